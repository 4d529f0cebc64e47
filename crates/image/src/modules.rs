//! The modules of a kernel: where they are, and which need which.
//!
//! What a module needs is read from the module itself (`depends` in its section `.modinfo`), so neither `depmod` nor
//! `modprobe` has to be here, and nothing has to be installed.

use std::collections::{HashMap, HashSet};
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

use elf::ElfBytes;
use elf::endian::AnyEndian;

use crate::error::{ImageError, Result, reading};

/// The largest that a module may be, bytes; the largest of Debian's is 12 MB.
const LARGEST: u64 = 128 << 20;

/// The modules of one kernel.
pub(crate) struct Modules {
    files: HashMap<String, PathBuf>,
    builtin: HashSet<String>,
}

/// One module as it is loaded.
#[derive(Debug, Clone)]
pub(crate) struct Module {
    pub name: String,
    /// What the file holds, decompressed.
    pub bytes: Vec<u8>,
    needs: Vec<String>,
}

/// Kernels take `-` and `_` in names of modules for the same.
fn plain(name: &str) -> String {
    name.replace('-', "_")
}

/// The name of the module in a file, if it is one.
fn name_of(path: &Path) -> Option<String> {
    let name = path.file_name()?.to_str()?;
    let name = [".xz", ".zst", ".gz"].iter().find_map(|end| name.strip_suffix(end)).unwrap_or(name);
    Some(plain(name.strip_suffix(".ko")?))
}

impl Modules {
    /// Looks through the folder `.../lib/modules/RELEASE`.
    pub(crate) fn look(folder: &Path) -> Result<Self> {
        let mut files = HashMap::new();
        let mut folders = vec![folder.join("kernel")];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(&folder).map_err(reading(&folder))? {
                let entry = entry.map_err(reading(&folder))?;
                let path = entry.path();
                if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                    folders.push(path);
                } else if let Some(name) = name_of(&path) {
                    files.insert(name, path);
                }
            }
        }
        // A kernel without any module has none built in that it would list either.
        let builtin = fs::read_to_string(folder.join("modules.builtin")).unwrap_or_default();
        Ok(Self { files, builtin: builtin.lines().filter_map(|line| name_of(Path::new(line))).collect() })
    }

    /// Whether the kernel has it, as a module or built in.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.files.contains_key(&plain(name)) || self.builtin.contains(&plain(name))
    }

    /// The names of the modules in a folder such as `net/ipv4`, sorted.
    pub(crate) fn in_folder(&self, folder: &str) -> Vec<&str> {
        let there = self.files.iter().filter(|(_, path)| path.parent().is_some_and(|parent| parent.ends_with(folder)));
        let mut names: Vec<&str> = there.map(|(name, _)| name.as_str()).collect();
        names.sort_unstable();
        names
    }

    /// The modules that drive a device, by what the kernel says of it in `modalias`.
    pub(crate) fn driving(folder: &Path, modalias: &str) -> Result<Vec<String>> {
        let path = folder.join("modules.alias");
        let aliases = fs::read_to_string(&path).map_err(reading(&path))?;
        Ok(drivers(&aliases, modalias))
    }

    /// What has to be loaded for a module, itself included, in the order of loading. `known` keeps what was read.
    pub(crate) fn chain(&self, name: &str, known: &mut HashMap<String, Module>) -> Result<Vec<String>> {
        let mut order = Vec::new();
        self.visit(&plain(name), known, &mut Vec::new(), &mut order)?;
        Ok(order)
    }

    fn visit(
        &self,
        name: &str,
        known: &mut HashMap<String, Module>,
        above: &mut Vec<String>,
        order: &mut Vec<String>,
    ) -> Result<()> {
        // A circle could not be loaded by anybody; the kernel will say so.
        if order.iter().chain(above.iter()).any(|seen| seen == name) || self.builtin.contains(name) {
            return Ok(());
        }
        if !known.contains_key(name) {
            let path = self.files.get(name).ok_or_else(|| {
                let tried = format!("collect the kernel's module {name}");
                let why = above
                    .last()
                    .map_or_else(|| "it is not there".into(), |by| format!("{by} needs it and it is not there"));
                ImageError::new(
                    tried,
                    why,
                    "the kernel's modules are incomplete: run `make platforms`, or name another kernel",
                )
            })?;
            known.insert(name.to_owned(), read(name, path)?);
        }
        let needs = known.get(name).map(|module| module.needs.clone()).unwrap_or_default();
        above.push(name.to_owned());
        for need in &needs {
            self.visit(need, known, above, order)?;
        }
        above.pop();
        order.push(name.to_owned());
        Ok(())
    }
}

fn read(name: &str, path: &Path) -> Result<Module> {
    let file = File::open(path).map_err(reading(path))?;
    let mut bytes = Vec::new();
    let damaged = |why: String| {
        ImageError::new(format!("read the module {}", path.display()), why, "is the file damaged? run `make platforms`")
    };
    let mut reader: Box<dyn Read> = match path.extension().and_then(|end| end.to_str()) {
        Some("xz") => Box::new(lzma_rust2::XzReader::new(file, true)),
        Some("zst") => {
            Box::new(ruzstd::decoding::StreamingDecoder::new(file).map_err(|error| damaged(error.to_string()))?)
        }
        Some("gz") => return Err(damaged("modules compressed by gzip are not read".into())),
        _ => Box::new(file),
    };
    reader.by_ref().take(LARGEST + 1).read_to_end(&mut bytes).map_err(|error| damaged(error.to_string()))?;
    if bytes.len() as u64 > LARGEST {
        return Err(damaged(format!("it is larger than {LARGEST} bytes")));
    }
    let needs = needs(&bytes).ok_or_else(|| damaged("it is no kernel module".into()))?;
    Ok(Module { name: name.to_owned(), bytes, needs })
}

/// The modules with an alias of that device, from lines `alias PATTERN MODULE` as depmod writes them.
fn drivers(aliases: &str, modalias: &str) -> Vec<String> {
    let driver = |line: &str| {
        let mut words = line.split_whitespace();
        let pattern = words.next().filter(|word| *word == "alias").and_then(|_| words.next())?;
        is_like(modalias, pattern).then(|| words.next().map(plain))?
    };
    aliases.lines().filter_map(driver).collect()
}

/// Whether a text is like a pattern in which `*` stands for any characters: patterns of PCI devices have nothing else.
fn is_like(text: &str, pattern: &str) -> bool {
    let Some((first, rest)) = pattern.split_once('*') else { return text == pattern };
    let Some(text) = text.strip_prefix(first) else { return false };
    text.char_indices().map(|(at, _)| at).chain([text.len()]).any(|at| is_like(&text[at..], rest))
}

/// What a module says that it needs.
fn needs(bytes: &[u8]) -> Option<Vec<String>> {
    let elf = ElfBytes::<AnyEndian>::minimal_parse(bytes).ok()?;
    let header = elf.section_header_by_name(".modinfo").ok()??;
    let (text, _) = elf.section_data(&header).ok()?;
    let mut needs = Vec::new();
    for line in text.split(|&byte| byte == 0) {
        if let Some(names) = line.strip_prefix(b"depends=") {
            let names = std::str::from_utf8(names).ok()?;
            needs.extend(names.split(',').filter(|name| !name.is_empty()).map(plain));
        }
    }
    Some(needs)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn names_are_read_from_files_of_all_kinds() {
        let name = |path: &str| name_of(Path::new(path));
        assert_eq!(name("kernel/drivers/char/hw_random/virtio-rng.ko"), Some("virtio_rng".into()));
        assert_eq!(name("a/b.ko.xz"), Some("b".into()));
        assert_eq!(name("a/b.ko.zst"), Some("b".into()));
        assert_eq!(name("a/modules.dep"), None);
    }

    #[test]
    fn the_driver_of_a_device_is_found_by_its_alias() {
        let aliases = "# Aliases\nalias pci:v00008086d000010CAsv*sd*bc*sc*i* igbvf\n\
                       alias pci:v00008086d000010C9sv*sd*bc*sc*i* igb\nalias pci:v0000DEAD* other\nalias char-major-1-* mem\n";
        let function = "pci:v00008086d000010CAsv00000000sd00000000bc02sc00i00";
        assert_eq!(drivers(aliases, function), ["igbvf"]);
        assert_eq!(drivers(aliases, "pci:v0000DEADd1"), ["other"]);
        assert!(drivers(aliases, "pci:v00008086d000010CAsv0").is_empty());
    }

    proptest! {
        #[test]
        fn damaged_modules_are_no_modules(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
            needs(&bytes);
            let mut elf = b"\x7fELF\x02\x01\x01".to_vec();
            elf.extend(bytes);
            needs(&elf);
        }
    }
}
