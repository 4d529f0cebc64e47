//! The devices of a machine: firmware, memory modules, NUMA nodes, disks, arrays, storage controllers, network cards.
//!
//! Everything is from sysfs, from the firmware's own table (SMBIOS) and from ethtool's ioctl. Serial numbers, asset tags, MAC addresses and the names that users give to
//! volumes are not read, or not kept.

mod disks;
mod firmware;
mod nics;
mod numa;
mod pci;
mod smbios;
#[cfg(test)]
mod tests;

use std::io::Read;
use std::path::PathBuf;

use tare_model::environment::{HardwareTable, UNREPORTED};
use tare_model::text::readable;

use super::{View, reason};
use crate::Ethtool;

/// Most bytes of a value in sysfs that are kept.
const CELL_BYTES: usize = 200;
/// Most devices of one kind that are listed: few enough for a reader, and more than hosts have without virtual functions.
const MOST_DEVICES: usize = 256;
/// Most names of a directory that are looked at.
const MOST_NAMES: usize = 16_384;

/// A place of the run's, in words, and the disk it is on by its name in `/sys/block`; `None` where it is on no single disk.
pub(super) type Place = (String, Option<String>);

/// The devices of the host in the view. `ethtool`: the way to the drivers of its network cards, or why there is none. `places`: what of the run's is
/// where.
pub(super) fn read(view: &View<'_>, ethtool: &Result<Ethtool, String>, places: &[Place]) -> Vec<HardwareTable> {
    let (table, pci) = (smbios::Table::read(view), pci::Bus::read(view));
    let mut tables = vec![
        firmware::firmware(view, &table),
        firmware::memory_modules(&table),
        numa::nodes(view),
        disks::disks(view, places),
        disks::arrays(view, places),
        pci.storage_controllers(view),
        nics::nics(view, &pci, ethtool),
    ];
    tables.iter_mut().for_each(shorten);
    tables
}

/// One network card of the host in the view, whatever it is made of, as name and value.
pub(super) fn card(view: &View<'_>, ethtool: Option<&Ethtool>, name: &str) -> Vec<(String, String)> {
    nics::card(view, &pci::Bus::read(view), ethtool, name)
}

fn shorten(table: &mut HardwareTable) {
    let left_out = table.rows.len().saturating_sub(MOST_DEVICES);
    if left_out > 0 {
        table.rows.truncate(MOST_DEVICES);
        table.notes.push(format!("{left_out} more are not listed."));
    }
}

/// A table in the making.
fn table(title: &str, columns: &[&str]) -> HardwareTable {
    HardwareTable {
        title: title.to_owned(),
        columns: columns.iter().map(|column| (*column).to_owned()).collect(),
        ..HardwareTable::default()
    }
}

/// The same without rows, for that reason.
fn none(title: &str, columns: &[&str], why: impl Into<String>) -> HardwareTable {
    HardwareTable { notes: vec![why.into()], ..table(title, columns) }
}

/// What others wrote, fit for a cell: on one line, not too long.
fn fit(text: &str) -> String {
    let words = text.split(|c: char| c.is_whitespace() || c == '\0').filter(|word| !word.is_empty());
    let line = readable(&words.collect::<Vec<_>>().join(" "));
    line[..line.floor_char_boundary(CELL_BYTES)].to_owned()
}

/// A size of memory.
fn gib(bytes: u64) -> String {
    const GIB: u64 = 1 << 30;
    if bytes.is_multiple_of(GIB) {
        format!("{} GiB", bytes / GIB)
    } else {
        format!("{:.1} GiB", bytes as f64 / GIB as f64)
    }
}

/// A text that may be empty.
fn reported(text: &str) -> String {
    let text = fit(text);
    if text.is_empty() || ["N/A", "n/a", "unknown"].contains(&text.as_str()) { UNREPORTED.to_owned() } else { text }
}

impl View<'_> {
    /// The beginning of a file, or why it cannot be read. Devices put into it what they like.
    fn bytes(&self, path: &str, most: u64) -> std::io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        std::fs::File::open(self.root.join(path))?.take(most).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    /// A value of sysfs; `None` where it is not there or says nothing.
    fn value(&self, path: &str) -> Option<String> {
        let bytes = self.bytes(path, 4096).ok()?;
        Some(fit(&String::from_utf8_lossy(&bytes))).filter(|text| !text.is_empty())
    }

    /// The same for a cell: what is not there is not reported, and what cannot be read says why.
    fn cell(&self, path: &str) -> String {
        match self.bytes(path, 4096) {
            Ok(bytes) => reported(&String::from_utf8_lossy(&bytes)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => UNREPORTED.to_owned(),
            Err(error) => reason(&error),
        }
    }

    fn number<T: std::str::FromStr>(&self, path: &str) -> Option<T> {
        self.value(path)?.parse().ok()
    }

    /// Where a symbolic link of sysfs leads, all the way.
    fn target(&self, path: &str) -> Option<PathBuf> {
        std::fs::canonicalize(self.root.join(path)).ok()
    }

    /// The last name of where a symbolic link of sysfs leads, such as that of a driver.
    fn target_name(&self, path: &str) -> Option<String> {
        Some(fit(self.target(path)?.file_name()?.to_str()?))
    }

    /// Names in a directory of devices. `Err`: why it cannot be read, as a sentence.
    fn devices(&self, path: &str) -> Result<Vec<String>, String> {
        let names = self.names(path).map_err(|why| format!("{why}."))?;
        Ok(names.into_iter().take(MOST_NAMES).collect())
    }
}
