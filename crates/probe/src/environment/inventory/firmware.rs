//! What the firmware tells: itself, the board, and the memory modules.

use tare_model::environment::HardwareTable;

use super::smbios::{BIOS, MEMORY_ARRAY, MEMORY_DEVICE, Structure, Table};
use super::{UNREPORTED, View, gib, none, table};

/// The firmware and the board, from the kernel's copies in sysfs, else from the table.
pub(super) fn firmware(view: &View<'_>, smbios: &Table) -> HardwareTable {
    const TITLE: &str = "Firmware and board";
    const COLUMNS: [&str; 5] = ["BIOS", "Version", "Date", "System", "Board"];
    let id = |name: &str| view.value(&format!("sys/class/dmi/id/{name}"));
    let bios = smbios.of_kind(BIOS).next();
    // Places of the numbers of its texts: section 7.1.
    let of_bios =
        |name: &str, at: usize| id(name).or_else(|| bios.as_ref()?.text(at)).unwrap_or_else(|| UNREPORTED.to_owned());
    let both = |vendor: &str, product: &str| {
        let words: Vec<String> = [vendor, product].into_iter().filter_map(id).collect();
        if words.is_empty() { UNREPORTED.to_owned() } else { words.join(" ") }
    };
    let row = vec![
        of_bios("bios_vendor", 0x04),
        of_bios("bios_version", 0x05),
        of_bios("bios_date", 0x08),
        both("sys_vendor", "product_name"),
        both("board_vendor", "board_name"),
    ];
    if row.iter().all(|cell| cell == UNREPORTED) {
        let why = view.names("sys/class/dmi/id").err().map_or_else(
            || "not available: the firmware tells nothing (/sys/class/dmi/id).".to_owned(),
            |why| format!("{why}."),
        );
        return none(TITLE, &COLUMNS, why);
    }
    HardwareTable { rows: vec![row], ..table(TITLE, &COLUMNS) }
}

/// The modules that are there, of structures of type 17.
pub(super) fn memory_modules(smbios: &Table) -> HardwareTable {
    const TITLE: &str = "Memory modules";
    const COLUMNS: [&str; 7] = ["Slot", "Size", "Type", "Rated (MT/s)", "Configured (MT/s)", "Manufacturer", "Part"];
    if let Some(why) = smbios.why() {
        return none(TITLE, &COLUMNS, why);
    }
    let mut modules = table(TITLE, &COLUMNS);
    let (mut slots, mut filled) = (0, 0);
    for module in smbios.of_kind(MEMORY_DEVICE) {
        slots += 1;
        // Zero: nothing is in the slot.
        if module.word(SIZE) == Some(0) {
            continue;
        }
        filled += 1;
        modules.rows.push(row(&module));
    }
    modules.notes.push(match slots {
        0 => "The firmware's table lists no memory.".to_owned(),
        _ => format!("{filled} of {slots} slots are filled."),
    });
    if let Some(correction) = smbios.of_kind(MEMORY_ARRAY).find_map(|array| correction(&array)) {
        modules.notes.push(format!("Error correction: {correction}."));
    }
    if smbios.is_cut() {
        modules.notes.push("The firmware's table breaks off, so some may be missing.".to_owned());
    }
    modules
}

/// Places in structures of type 17: section 7.18.
const SIZE: usize = 0x0c;
const EXTENDED_SIZE: usize = 0x1c;
const RATED: (usize, usize) = (0x15, 0x54);
const CONFIGURED: (usize, usize) = (0x20, 0x58);

fn row(module: &Structure<'_>) -> Vec<String> {
    let text = |at| module.text(at).unwrap_or_else(|| UNREPORTED.to_owned());
    let number = |value: Option<u32>| value.map_or_else(|| UNREPORTED.to_owned(), |value| value.to_string());
    // A bank tells apart modules whose firmware calls every slot the same.
    let slot = match (module.text(0x10), module.text(0x11)) {
        (Some(slot), Some(bank)) => format!("{slot}, {bank}"),
        (slot, bank) => slot.or(bank).unwrap_or_else(|| UNREPORTED.to_owned()),
    };
    vec![
        slot,
        size(module).map_or_else(|| UNREPORTED.to_owned(), gib),
        kind(module),
        number(speed(module, RATED)),
        number(speed(module, CONFIGURED)),
        text(0x17),
        text(0x1a),
    ]
}

/// Bytes.
fn size(module: &Structure<'_>) -> Option<u64> {
    match module.word(SIZE)? {
        0xffff => None,
        0x7fff => Some(u64::from(module.double_word(EXTENDED_SIZE)? & 0x7fff_ffff) << 20),
        kib if kib & 0x8000 != 0 => Some(u64::from(kib & 0x7fff) << 10),
        mib => Some(u64::from(mib) << 20),
    }
}

/// Transfers a second, millions; what does not fit in the first place is in the second.
fn speed(module: &Structure<'_>, (at, extended): (usize, usize)) -> Option<u32> {
    let speed = match module.word(at)? {
        0xffff => module.double_word(extended)? & 0x7fff_ffff,
        speed => u32::from(speed),
    };
    (speed > 0).then_some(speed)
}

/// Type of memory, and whether the module is buffered: tables 78 and 79.
fn kind(module: &Structure<'_>) -> String {
    let kind = match module.byte(0x12) {
        Some(0x03) => "DRAM",
        Some(0x07) => "RAM",
        Some(0x0f) => "SDRAM",
        Some(0x12) => "DDR",
        Some(0x13) => "DDR2",
        Some(0x14) => "DDR2 FB-DIMM",
        Some(0x18) => "DDR3",
        Some(0x1a) => "DDR4",
        Some(0x1b) => "LPDDR",
        Some(0x1c) => "LPDDR2",
        Some(0x1d) => "LPDDR3",
        Some(0x1e) => "LPDDR4",
        Some(0x1f) => "persistent memory",
        Some(0x20) => "HBM",
        Some(0x21) => "HBM2",
        Some(0x22) => "DDR5",
        Some(0x23) => "LPDDR5",
        Some(0x24) => "HBM3",
        Some(0x01) | Some(0x02) | None => return UNREPORTED.to_owned(),
        Some(other) => return format!("type {other:#04x} of SMBIOS"),
    };
    match module.word(0x13) {
        Some(detail) if detail & 1 << 13 != 0 => format!("{kind}, registered"),
        Some(detail) if detail & 1 << 14 != 0 => format!("{kind}, unbuffered"),
        _ => kind.to_owned(),
    }
}

/// How errors of the main memory are corrected: section 7.17.
fn correction(array: &Structure<'_>) -> Option<&'static str> {
    const MAIN_MEMORY: u8 = 3;
    if array.byte(0x05)? != MAIN_MEMORY {
        return None;
    }
    match array.byte(0x06)? {
        3 => Some("none"),
        4 => Some("parity"),
        5 => Some("single-bit ECC"),
        6 => Some("multi-bit ECC"),
        7 => Some("CRC"),
        _ => None,
    }
}
