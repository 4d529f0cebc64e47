//! A made-up server: two memory modules, an NVMe disk, a RAID controller with a disk, an array, a network card, two NUMA nodes.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use super::*;

/// A structure of SMBIOS: its type, what follows the header, its texts.
fn structure(kind: u8, body: &[u8], texts: &[&str]) -> Vec<u8> {
    let mut bytes = vec![kind, (body.len() + 4) as u8, 0, 0x11];
    bytes.extend(body);
    for text in texts {
        bytes.extend(text.as_bytes());
        bytes.push(0);
    }
    bytes.extend(if texts.is_empty() { &[0, 0][..] } else { &[0] });
    bytes
}

/// A memory module of version 3.2: size and extended size, texts in slots 1 to 6, serial number and asset tag among them.
fn module(size: u16, extended: u32, slot: &str) -> Vec<u8> {
    let mut body = vec![0; 0x54 - 4];
    let mut put = |at: usize, bytes: &[u8]| body[at - 4..at - 4 + bytes.len()].copy_from_slice(bytes);
    put(0x0c, &size.to_le_bytes());
    put(0x10, &[1, 2]);
    put(0x12, &[0x1a]);
    put(0x13, &(1_u16 << 13).to_le_bytes());
    put(0x15, &3200_u16.to_le_bytes());
    put(0x17, &[3, 4, 5, 6]);
    put(0x1c, &extended.to_le_bytes());
    put(0x20, &2933_u16.to_le_bytes());
    structure(17, &body, &[slot, "NODE 1", "Samsung", "SERIAL-0815", "ASSET-4711", "M393A4K40DB3-CWE"])
}

fn smbios() -> Vec<u8> {
    let bios = [1, 2, 0, 0xf0, 3];
    [
        structure(0, &bios, &["Dell Inc.", "2.12.2", "07/09/2021"]),
        structure(1, &[0; 23], &[]),
        structure(16, &[3, 3, 6, 0, 0, 0, 0x10, 0, 0, 4, 0], &[]),
        module(0x7fff, 32 << 10, "DIMM_A1"),
        module(16 << 10, 0, "DIMM_A2"),
        module(0, 0, "DIMM_A3"),
        structure(127, &[], &[]),
    ]
    .concat()
}

struct Host(tempfile::TempDir);

impl Host {
    fn path(&self, path: &str) -> PathBuf {
        self.0.path().join(path)
    }

    fn write(&self, path: &str, text: impl AsRef<[u8]>) {
        let path = self.path(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    fn files(&self, below: &str, files: &[(&str, &str)]) {
        files.iter().for_each(|(name, text)| self.write(&format!("{below}/{name}"), format!("{text}\n")));
    }

    /// A link from one place of the host to another.
    fn link(&self, from: &str, to: &str) {
        let (from, to) = (self.path(from), self.path(to));
        std::fs::create_dir_all(from.parent().unwrap()).unwrap();
        std::fs::create_dir_all(&to).unwrap();
        symlink(to, from).unwrap();
    }

    fn pci(&self, address: &str, files: &[(&str, &str)], driver: &str) -> String {
        let device = format!("sys/devices/pci0000:00/0000:00:01.0/{address}");
        self.files(&device, files);
        self.link(&format!("{PCI}/{address}"), &device);
        self.link(&format!("{device}/driver"), &format!("sys/bus/pci/drivers/{driver}"));
        device
    }

    fn tables(&self, places: &[Place]) -> Vec<HardwareTable> {
        read(&View { root: self.0.path() }, &Err("no drivers here".to_owned()), places)
    }
}

const PCI: &str = "sys/bus/pci/devices";

fn server() -> Host {
    let host = Host(tempfile::tempdir().unwrap());
    host.write("sys/firmware/dmi/tables/DMI", smbios());
    host.files(
        "sys/class/dmi/id",
        &[("board_vendor", "Dell Inc."), ("board_name", "0H28RR"), ("bios_date", "07/09/2021")],
    );
    host.write("usr/share/misc/pci.ids", PCI_IDS);
    disks(&host);
    array(&host);
    let nic = host.pci(
        "0000:03:00.0",
        &[
            ("class", "0x020000"),
            ("vendor", "0x8086"),
            ("device", "0x1563"),
            ("numa_node", "1"),
            ("current_link_speed", "8.0 GT/s PCIe"),
            ("current_link_width", "4"),
            ("max_link_speed", "8.0 GT/s PCIe"),
            ("max_link_width", "8"),
        ],
        "ixgbe",
    );
    let card = format!("{nic}/net/enp3s0");
    host.files(
        &card,
        &[
            ("speed", "10000"),
            ("duplex", "full"),
            ("mtu", "9000"),
            ("operstate", "up"),
            ("address", "52:54:00:ab:cd:ef"),
        ],
    );
    host.link("sys/class/net/enp3s0", &card);
    host.link(&format!("{card}/device"), &nic);
    host.files("sys/class/net/lo", &[("mtu", "65536")]);
    for (node, cpus, distance) in [(0, "0-15", "10 21"), (1, "16-31", "21 10")] {
        let files = [("cpulist", cpus), ("distance", distance), ("meminfo", "Node 0 MemTotal:       33554432 kB")];
        host.files(&format!("sys/devices/system/node/node{node}"), &files);
    }
    host
}

const PCI_IDS: &str = "# a list\n1000  Broadcom / LSI\n\t005d  MegaRAID SAS-3 3108 [Invader]\n\t\t1028 1f47  PERC H730P Mini\n\
    \t005e  Another\n8086  Intel Corporation\n\t1563  Ethernet Controller X550\nC 01  Mass storage controller\n";

fn disks(host: &Host) {
    let nvme = host.pci("0000:01:00.0", &[("class", "0x010802"), ("vendor", "0x144d"), ("device", "0xa824")], "nvme");
    let controller = format!("{nvme}/nvme/nvme0");
    host.files(
        &controller,
        &[
            ("model", "SAMSUNG MZWLL1T6HAJQ"),
            ("firmware_rev", "GPJA0B3Q"),
            ("transport", "pcie"),
            ("serial", "SERIAL-0815"),
        ],
    );
    let disk = format!("{controller}/nvme0n1");
    host.files(
        &disk,
        &[
            ("size", "3125627568"),
            ("queue/rotational", "0"),
            ("queue/scheduler", "[none] mq-deadline"),
            ("queue/nr_requests", "1023"),
            ("queue/write_cache", "write through"),
            ("mq/0/cpu_list", "0"),
            ("mq/1/cpu_list", "1"),
            ("nvme0n1p1/partition", "1"),
        ],
    );
    host.link("sys/block/nvme0n1", &disk);
    host.link(&format!("{disk}/device"), &controller);
    let raid = host.pci(
        "0000:02:00.0",
        &[
            ("class", "0x010400"),
            ("vendor", "0x1000"),
            ("device", "0x005d"),
            ("subsystem_vendor", "0x1028"),
            ("subsystem_device", "0x1f47"),
            ("host0/scsi_host/host0/version_fw", "25.5.9.0001"),
        ],
        "megaraid_sas",
    );
    host.write("sys/bus/pci/drivers/megaraid_sas/module/version", "07.719.03.00-rc1\n");
    let target = format!("{raid}/host0/target0:2:0/0:2:0:0");
    host.files(&target, &[("vendor", "DELL"), ("model", "PERC H730P Mini"), ("rev", "4.30"), ("queue_depth", "256")]);
    let disk = format!("{target}/block/sda");
    host.files(
        &disk,
        &[
            ("size", "1167966208"),
            ("queue/rotational", "1"),
            ("queue/scheduler", "none [mq-deadline]"),
            ("queue/nr_requests", "256"),
        ],
    );
    host.link("sys/block/sda", &disk);
    host.link(&format!("{disk}/device"), &target);
    host.files("sys/block/loop0", &[("size", "100")]);
}

/// A mirror of a partition of the NVMe disk, and a logical volume on it whose name is the host's.
fn array(host: &Host) {
    host.files(
        "sys/block/md127",
        &[
            ("size", "2048"),
            ("md/level", "raid1"),
            ("md/raid_disks", "2"),
            ("md/degraded", "1"),
            ("md/chunk_size", "65536"),
            ("md/array_state", "clean"),
        ],
    );
    host.link(
        "sys/block/md127/slaves/nvme0n1p1",
        "sys/devices/pci0000:00/0000:00:01.0/0000:01:00.0/nvme/nvme0/nvme0n1/nvme0n1p1",
    );
    host.files(
        "sys/block/dm-0",
        &[("size", "2048"), ("dm/uuid", "LVM-abcdefgh"), ("dm/name", "db7-root"), ("dm/suspended", "0")],
    );
    host.link("sys/block/dm-0/slaves/md127", "sys/block/md127");
}

/// The cell of a device in a column.
fn cell<'a>(tables: &'a [HardwareTable], title: &str, device: &str, column: &str) -> &'a str {
    let table = tables.iter().find(|table| table.title == title).unwrap();
    let at = table.columns.iter().position(|own| own == column).unwrap();
    &table.rows.iter().find(|row| row[0].starts_with(device)).unwrap()[at]
}

fn notes(tables: &[HardwareTable], title: &str) -> String {
    tables.iter().find(|table| table.title == title).unwrap().notes.join(" ")
}

#[test]
fn memory_modules_and_firmware_are_read_from_the_table() {
    let tables = server().tables(&[]);
    let of = |device: &str, column: &str| cell(&tables, "Memory modules", device, column);
    assert_eq!(of("DIMM_A1", "Slot"), "DIMM_A1, NODE 1");
    assert_eq!((of("DIMM_A1", "Size"), of("DIMM_A2", "Size")), ("32 GiB", "16 GiB"));
    assert_eq!((of("DIMM_A1", "Type"), of("DIMM_A1", "Rated (MT/s)")), ("DDR4, registered", "3200"));
    assert_eq!(of("DIMM_A2", "Configured (MT/s)"), "2933");
    assert_eq!((of("DIMM_A2", "Manufacturer"), of("DIMM_A2", "Part")), ("Samsung", "M393A4K40DB3-CWE"));
    assert_eq!(notes(&tables, "Memory modules"), "2 of 3 slots are filled. Error correction: multi-bit ECC.");
    // The date is in sysfs, the other two in the table alone.
    let of = |column: &str| cell(&tables, "Firmware and board", "Dell", column);
    assert_eq!([of("BIOS"), of("Version"), of("Date")], ["Dell Inc.", "2.12.2", "07/09/2021"]);
    assert_eq!([of("System"), of("Board")], [UNREPORTED, "Dell Inc. 0H28RR"]);
}

#[test]
fn disks_are_listed_with_what_they_hang_on_and_what_of_the_runs_they_hold() {
    let places = [("the run folder".to_owned(), Some("dm-0".to_owned())), ("guests' files".to_owned(), None)];
    let tables = server().tables(&places);
    let of = |disk: &str| {
        let columns = [
            "Model",
            "Firmware",
            "Size",
            "Bus",
            "Controller",
            "Rotational",
            "Scheduler",
            "Requests",
            "Queues",
            "Write cache",
            "Holds",
        ];
        columns.map(|column| cell(&tables, "Disks", disk, column))
    };
    assert_eq!(
        of("nvme0n1"),
        [
            "SAMSUNG MZWLL1T6HAJQ",
            "GPJA0B3Q",
            "1600.3 GB",
            "NVMe over PCIe",
            "0000:01:00.0",
            "no",
            "none",
            "1023",
            "2",
            "write through",
            "the run folder"
        ]
    );
    assert_eq!(
        of("sda"),
        [
            "DELL PERC H730P Mini",
            "4.30",
            "598.0 GB",
            "SCSI",
            "0000:02:00.0",
            "yes",
            "mq-deadline",
            "256, device 256",
            UNREPORTED,
            UNREPORTED,
            "nothing of the run's"
        ]
    );
    assert!(notes(&tables, "Disks").starts_with("The disk under guests' files is not known"));
    assert_eq!(tables.iter().find(|table| table.title == "Disks").unwrap().rows.len(), 2, "no loop device, no array");
    let of = |device: &str| {
        ["Kind", "On", "Chunk", "State", "Holds"].map(|column| cell(&tables, "Arrays and mapped disks", device, column))
    };
    assert_eq!(of("md127"), ["md raid1 of 2, 1 missing", "nvme0n1p1", "64 KiB", "active", "the run folder"]);
    assert_eq!(of("dm-0"), ["LVM", "md127", "none", "active", "the run folder"]);
}

#[test]
fn controllers_cards_and_nodes_are_named() {
    let host = server();
    let tables = host.tables(&[]);
    let of = |address: &str, column: &str| cell(&tables, "Storage controllers", address, column);
    assert_eq!([of("0000:01", "Kind"), of("0000:01", "Model"), of("0000:01", "Driver")], ["NVMe", "144d:a824", "nvme"]);
    assert_eq!(
        ["Kind", "Model", "Driver", "Firmware"].map(|column| of("0000:02", column)),
        [
            "RAID",
            "Broadcom / LSI MegaRAID SAS-3 3108 [Invader] (1000:005d), card PERC H730P Mini (1028:1f47)",
            "megaraid_sas 07.719.03.00-rc1",
            "25.5.9.0001"
        ]
    );
    let of = |column: &str| cell(&tables, "Network cards", "enp3s0", column);
    assert_eq!(of("Model"), "Intel Corporation Ethernet Controller X550 (8086:1563)");
    assert_eq!([of("Driver"), of("Firmware"), of("Queues")], ["ixgbe", UNREPORTED, UNREPORTED]);
    assert_eq!([of("Speed"), of("MTU (B)"), of("NUMA node")], ["10000 Mbit/s, full duplex", "9000", "1"]);
    assert_eq!(of("PCIe link"), "8.0 GT/s x4 of 8.0 GT/s x8");
    let said = notes(&tables, "Network cards");
    assert!(said.contains("/usr/share/misc/pci.ids") && said.contains("no drivers here"), "{said}");
    let nodes = tables.iter().find(|table| table.title == "NUMA nodes").unwrap();
    assert_eq!(nodes.rows, [["0", "0-15", "32 GiB", "10 21"], ["1", "16-31", "32 GiB", "21 10"]]);
    std::fs::remove_file(host.path("usr/share/misc/pci.ids")).unwrap();
    let tables = host.tables(&[]);
    assert_eq!(cell(&tables, "Network cards", "enp3s0", "Model"), "8086:1563");
    assert!(notes(&tables, "Network cards").starts_with("Ids alone"));
}

#[test]
fn no_serial_number_no_address_and_no_name_of_a_volume_is_recorded() {
    let all = format!("{:?}", server().tables(&[]));
    for secret in ["SERIAL", "ASSET", "52:54:00", "db7", "abcdefgh"] {
        assert!(!all.contains(secret), "{secret} in {all}");
    }
}

#[test]
fn a_host_that_tells_nothing_says_why_of_each_kind() {
    let host = Host(tempfile::tempdir().unwrap());
    for table in host.tables(&[]) {
        assert!(
            table.rows.is_empty() && table.notes[0].starts_with("not available: not present on this host"),
            "{table:?}"
        );
    }
}

#[test]
fn a_damaged_table_is_read_as_far_as_it_is_whole() {
    let whole = smbios();
    let modules = |bytes: &[u8]| firmware::memory_modules(&smbios::Table::of(bytes));
    for end in 0..whole.len() {
        let read = modules(&whole[..end]);
        assert!(read.rows.len() <= 2 && read.notes.iter().any(|note| note.contains("breaks off")), "{end}: {read:?}");
    }
    // Each byte in turn becomes what a length, a number of a text or a size must not be.
    for at in 0..whole.len() {
        for byte in [0, 1, 3, 4, 0x7f, 0x80, 0xff] {
            let mut bytes = whole.clone();
            bytes[at] = byte;
            let table = smbios::Table::of(&bytes);
            let read = firmware::memory_modules(&table);
            assert!(
                read.rows.len() <= 3 && read.rows.iter().all(|row| row.len() == read.columns.len()),
                "{at}, {byte}"
            );
            firmware::firmware(&View { root: Path::new("/nonexistent") }, &table);
        }
    }
    // One structure whose text never ends, and more structures than a reader wants to see.
    assert!(modules(&[&[17, 4, 0, 1][..], &[b'x'; 1 << 16]].concat()).rows.is_empty());
    let host = Host(tempfile::tempdir().unwrap());
    host.write("sys/firmware/dmi/tables/DMI", [17, 4, 0, 0, 0, 0].repeat(1000));
    let tables = host.tables(&[]);
    let read = tables.iter().find(|table| table.title == "Memory modules").unwrap();
    assert_eq!((read.rows.len(), read.notes.last().unwrap().as_str()), (MOST_DEVICES, "744 more are not listed."));
}

#[test]
fn what_devices_say_is_cut_and_made_readable() {
    let host = server();
    host.write(
        "sys/devices/pci0000:00/0000:00:01.0/0000:01:00.0/nvme/nvme0/model",
        [&[0x1b, 0xff][..], &[b'x'; 8000]].concat(),
    );
    let tables = host.tables(&[]);
    let model = cell(&tables, "Disks", "nvme0n1", "Model");
    assert!(model.len() <= CELL_BYTES && !model.contains('\u{1b}'), "{model}");
}
