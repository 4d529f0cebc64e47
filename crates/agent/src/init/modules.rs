//! The kernel's modules: those are loaded that this machine has a device for.

use std::collections::HashSet;
use std::ffi::CString;
use std::fs;
use std::io;
use std::path::Path;

use super::{InitError, Result, during};

/// What is loaded for what: each line a feature, then files in the order of loading.
const LIST: &str = "/modules.load";

/// What the initial file system has of modules.
pub(super) struct Modules {
    list: String,
    /// The kernel's command line: parameters of modules are there as `MODULE.PARAMETER=VALUE`.
    words: String,
    loaded: HashSet<String>,
}

impl Modules {
    /// Reads the list; a kernel that needs no module has none.
    pub(super) fn read(words: &str) -> Result<Self> {
        let list = match fs::read_to_string(LIST) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            other => other.map_err(during(format!("read {LIST}")))?,
        };
        Ok(Self { list, words: words.to_owned(), loaded: HashSet::new() })
    }

    /// Finds the virtio devices of this machine, then loads what drives them.
    pub(super) fn load_for_devices(&mut self) -> Result<()> {
        if any_in("/sys/bus/pci/devices", |device| {
            fs::read_to_string(device.join("vendor")).is_ok_and(|vendor| vendor.trim() == "0x1af4")
        }) {
            self.load("pci")?;
        }
        // As a device tree or ACPI calls them; without either they are named on the command line.
        let platform = |device: &Path| {
            let name = device.file_name().unwrap_or_default().to_string_lossy();
            name.contains("virtio_mmio") || name.starts_with("LNRO0005")
        };
        if self.words.contains("virtio_mmio.device=") || any_in("/sys/bus/platform/devices", platform) {
            self.load("mmio")?;
        }
        let mut kinds = kinds();
        // The channel's first: its port is made while the others are loaded.
        kinds.sort_by_key(|&kind| (kind != 3, kind));
        kinds.dedup();
        kinds.into_iter().try_for_each(|kind| self.load(&format!("virtio-{kind}")))
    }

    /// Loads what a feature needs. What is not listed is built into the kernel, or not available: using it shows which.
    pub(super) fn load(&mut self, feature: &str) -> Result<()> {
        let line = self.list.lines().find_map(|line| line.strip_prefix(feature)?.strip_prefix(' '));
        let files: Vec<String> =
            line.unwrap_or_default().split(' ').filter(|file| !file.is_empty()).map(String::from).collect();
        for file in files {
            if !self.loaded.contains(&file) {
                self.load_file(&file)?;
                self.loaded.insert(file);
            }
        }
        Ok(())
    }

    fn load_file(&self, file: &str) -> Result<()> {
        let tried = || format!("load the kernel's module {file}");
        let name = Path::new(file).file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let parameters = CString::new(parameters(&name, &self.words)).map_err(during(tried()))?;
        let opened = fs::File::open(file).map_err(during(tried()))?;
        match rustix::system::finit_module(&opened, &parameters, 0) {
            Ok(()) | Err(rustix::io::Errno::EXIST) => Ok(()),
            Err(error) => Err(InitError { tried: tried(), why: io::Error::from(error).to_string() }),
        }
    }
}

/// The parameters that the command line has for a module.
fn parameters(module: &str, words: &str) -> String {
    let own = words.split_whitespace().filter_map(|word| {
        let (name, parameter) = word.split_once('.')?;
        (name.replace('-', "_") == module).then_some(parameter)
    });
    own.collect::<Vec<_>>().join(" ")
}

fn any_in(folder: &str, is_it: impl Fn(&Path) -> bool) -> bool {
    fs::read_dir(folder).is_ok_and(|entries| entries.filter_map(io::Result::ok).any(|entry| is_it(&entry.path())))
}

/// The kinds of virtio devices that are there (virtio 1.2, chapter 5: Device Types).
fn kinds() -> Vec<u32> {
    let Ok(devices) = fs::read_dir("/sys/bus/virtio/devices") else { return Vec::new() };
    let kinds = devices.filter_map(|device| {
        let kind = fs::read_to_string(device.ok()?.path().join("device")).ok()?;
        u32::from_str_radix(kind.trim().strip_prefix("0x")?, 16).ok()
    });
    kinds.collect()
}

/// The virtio devices in words, for errors.
pub(super) fn devices() -> String {
    let kinds = kinds();
    if kinds.is_empty() {
        return "no virtio device at all".into();
    }
    let kinds: Vec<String> = kinds.iter().map(u32::to_string).collect();
    format!("virtio devices of the kinds {}", kinds.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_of_a_module_are_gathered() {
        let words =
            "quiet virtio_mmio.device=512@0xfeb00e00:12 virtio-mmio.device=512@0xfeb00c00:11 virtio_net.napi_tx=1";
        assert_eq!(parameters("virtio_mmio", words), "device=512@0xfeb00e00:12 device=512@0xfeb00c00:11");
        assert_eq!(parameters("overlay", words), "");
    }
}
