//! The environment of a run, as it is disclosed.

use serde::{Deserialize, Serialize};

use crate::clean::Untrusted;

/// Everything about the host that can move a figure, in sections, redacted unless asked otherwise.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Environment {
    /// Sections in the order of the report.
    pub sections: Vec<Section>,
    /// The host's devices, a table a kind.
    pub hardware: Vec<HardwareTable>,
    /// Other machines that took part, each as its agent described it. They are known once a trial has reached them: a run folder keeps
    /// them in its journal.
    pub machines: Vec<Machine>,
    /// Whether host names, addresses and serial numbers were taken out.
    pub redacted: bool,
}

/// Stands in a cell for what a device, its driver or the firmware does not tell.
pub const UNREPORTED: &str = "not reported";

/// One section of the disclosure.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Section {
    /// Title, such as `CPU`.
    pub title: String,
    /// Name and value. A fact that could not be read is there too, its value saying why.
    pub facts: Vec<(String, String)>,
}

/// Devices of one kind, a row a device. Serial numbers, MAC addresses and names that users gave to volumes are in none.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct HardwareTable {
    /// What they are, such as `Disks`.
    pub title: String,
    /// Titles of the columns, with the unit where there is one. The first names the device.
    pub columns: Vec<String>,
    /// A cell a column. One that could not be read says so.
    pub rows: Vec<Vec<String>>,
    /// What is to be said of all of them, each in a sentence; of a table without rows, why it has none.
    pub notes: Vec<String>,
}

/// A machine beside the host of the run.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Machine {
    /// What it is in the run, such as `client` or `arm esxi`.
    pub name: String,
    /// As those of the host.
    pub sections: Vec<Section>,
    /// As that of the host.
    pub hardware: Vec<HardwareTable>,
}

impl Environment {
    /// Calls `each` with every value, cell and note, of the host and of the other machines.
    pub fn each_text(&mut self, mut each: impl FnMut(&mut String)) {
        each_text(&mut self.sections, &mut self.hardware, &mut each);
        self.machines.iter_mut().for_each(|machine| machine.each_text(&mut each));
    }
}

impl Machine {
    /// Calls `each` with every value, cell and note.
    pub fn each_text(&mut self, mut each: impl FnMut(&mut String)) {
        each_text(&mut self.sections, &mut self.hardware, &mut each);
    }
}

fn each_text(sections: &mut [Section], hardware: &mut [HardwareTable], each: &mut impl FnMut(&mut String)) {
    sections.iter_mut().flat_map(|section| &mut section.facts).for_each(|(_, value)| each(value));
    hardware.iter_mut().flat_map(|table| table.rows.iter_mut().flatten().chain(&mut table.notes)).for_each(each);
}

impl Untrusted for Section {
    fn clean(&mut self) {
        self.title.clean();
        self.facts.clean();
    }
}

impl Untrusted for HardwareTable {
    fn clean(&mut self) {
        self.title.clean();
        self.columns.clean();
        self.rows.clean();
        self.notes.clean();
    }
}

impl Untrusted for Machine {
    fn clean(&mut self) {
        self.name.clean();
        self.sections.clean();
        self.hardware.clean();
    }
}
