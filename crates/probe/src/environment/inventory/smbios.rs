//! The firmware's table of what is in the machine (DMTF DSP0134, SMBIOS 3.7), read from its bytes.
//!
//! The table is whatever the firmware, or a hypervisor, put there: every length in it is checked against what is there.

use super::{View, fit, reason};

/// Most bytes of a table that are read: a large server has some tens of KiB.
const TABLE_BYTES: u64 = 1 << 20;
/// The kernel's copy of the table. Only root may read it, for serial numbers are in it.
const PATH: &str = "sys/firmware/dmi/tables/DMI";

/// Types of structures.
pub(super) const BIOS: u8 = 0;
pub(super) const MEMORY_ARRAY: u8 = 16;
pub(super) const MEMORY_DEVICE: u8 = 17;
const END: u8 = 127;

/// The table.
pub(super) struct Table {
    bytes: Vec<u8>,
    /// Why it cannot be read.
    why: Option<String>,
}

/// One structure: its formatted area, header included, and the strings after it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Structure<'a> {
    pub kind: u8,
    area: &'a [u8],
    strings: &'a [u8],
}

impl Table {
    pub(super) fn read(view: &View<'_>) -> Self {
        match view.bytes(PATH, TABLE_BYTES) {
            Ok(bytes) => Self { bytes, why: None },
            Err(error) => {
                Self { bytes: Vec::new(), why: Some(format!("not available: {} (/{PATH}).", reason(&error))) }
            }
        }
    }

    #[cfg(test)]
    pub(super) fn of(bytes: &[u8]) -> Self {
        Self { bytes: bytes.to_vec(), why: None }
    }

    /// Why there is no table, in a sentence.
    pub(super) fn why(&self) -> Option<&str> {
        self.why.as_deref()
    }

    /// The whole structures of a type, in order.
    pub(super) fn of_kind(&self, kind: u8) -> impl Iterator<Item = Structure<'_>> {
        Structures { rest: &self.bytes }.filter(move |structure| structure.kind == kind)
    }

    /// Whether the table breaks off: what stands behind that place is not known.
    pub(super) fn is_cut(&self) -> bool {
        self.why.is_none() && !Structures { rest: &self.bytes }.any(|structure| structure.kind == END)
    }
}

struct Structures<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for Structures<'a> {
    type Item = Structure<'a>;

    /// The next structure that is whole; none after one that is not.
    fn next(&mut self) -> Option<Structure<'a>> {
        /// Type, length, handle.
        const HEADER: usize = 4;
        let whole = std::mem::take(&mut self.rest);
        let (kind, length) = (*whole.first()?, usize::from(*whole.get(1)?));
        let (area, after) = whole.split_at_checked(length).filter(|_| length >= HEADER)?;
        // A byte of zero ends each string, and one more the last; two where there is none.
        let end = after.windows(2).position(|pair| pair == [0, 0])?;
        let (strings, rest) = after.split_at_checked(end + 2)?;
        if kind != END {
            self.rest = rest;
        }
        Some(Structure { kind, area, strings })
    }
}

impl Structure<'_> {
    /// A byte; `None` where the structure, of an older version, ends before it.
    pub(super) fn byte(&self, at: usize) -> Option<u8> {
        self.area.get(at).copied()
    }

    pub(super) fn word(&self, at: usize) -> Option<u16> {
        Some(u16::from_le_bytes(self.area.get(at..at + 2)?.try_into().ok()?))
    }

    pub(super) fn double_word(&self, at: usize) -> Option<u32> {
        Some(u32::from_le_bytes(self.area.get(at..at + 4)?.try_into().ok()?))
    }

    /// The text that the number at this place names, counted from 1. `None` where it names none, or an empty one.
    pub(super) fn text(&self, at: usize) -> Option<String> {
        let number = usize::from(self.byte(at)?).checked_sub(1)?;
        let bytes = self.strings.split(|byte| *byte == 0).nth(number)?;
        Some(fit(&String::from_utf8_lossy(bytes))).filter(|text| !text.is_empty())
    }
}
