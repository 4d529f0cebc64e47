//! `/proc/PID/smaps`: what each mapping of a process takes.

/// One mapping; sizes in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Mapping {
    /// First address.
    pub start: u64,
    /// All of it.
    pub size: u64,
    /// Resident.
    pub rss: u64,
    /// Resident, each page divided by the number of its users.
    pub pss: u64,
    /// Resident with one user.
    pub private: u64,
    /// Merged.
    pub merged: u64,
    /// Whether it shows a file.
    pub file: bool,
    /// Whether it is open to merging.
    pub mergeable: bool,
}

/// All mappings, or the line that is not understood.
pub fn parse(text: &str) -> Result<Vec<Mapping>, String> {
    let mut mappings: Vec<Mapping> = Vec::new();
    for line in text.lines() {
        let name = line.split([' ', '\t']).next().unwrap_or_default();
        let wrong = || line.chars().take(80).collect::<String>();
        match (name.strip_suffix(':'), mappings.last_mut()) {
            // Names of fields end in a colon, ranges of addresses do not.
            (None, _) => mappings.push(head(line).ok_or_else(wrong)?),
            (Some("VmFlags"), Some(mapping)) => {
                mapping.mergeable = line.split(' ').any(|flag| flag == "mg");
            }
            (Some(field), Some(mapping)) => {
                if let Some(size) = field_of(mapping, field) {
                    let rest = line[field.len() + 1..].trim().strip_suffix(" kB");
                    let kib = rest.and_then(|kib| kib.trim().parse::<u64>().ok()).ok_or_else(wrong)?;
                    *size += kib << 10;
                }
            }
            (Some(_), None) => return Err(wrong()),
        }
    }
    Ok(mappings)
}

/// Where a line's figure belongs; `None` for one that nobody asks for.
fn field_of<'a>(mapping: &'a mut Mapping, field: &str) -> Option<&'a mut u64> {
    match field {
        "Size" => Some(&mut mapping.size),
        "Rss" => Some(&mut mapping.rss),
        "Pss" => Some(&mut mapping.pss),
        "Private_Clean" | "Private_Dirty" => Some(&mut mapping.private),
        "KSM" => Some(&mut mapping.merged),
        _ => None,
    }
}

/// `START-END PERMISSIONS OFFSET DEVICE INODE NAME`.
fn head(line: &str) -> Option<Mapping> {
    let mut words = line.split_ascii_whitespace();
    let (start, _) = words.next()?.split_once('-')?;
    let start = u64::from_str_radix(start, 16).ok()?;
    let inode = words.nth(3)?;
    Some(Mapping { start, file: inode != "0", ..Mapping::default() })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As Linux 6.18 tells it, shortened.
    const TEXT: &str = "\
55bc27d95000-55bc27d97000 r--p 00000000 fe:00 247026                     /usr/bin/a name: with colons
Size:                  8 kB
KernelPageSize:        4 kB
Rss:                   8 kB
Pss:                   3 kB
Pss_Dirty:             0 kB
Private_Clean:         4 kB
Private_Dirty:         1 kB
KSM:                   4 kB
THPeligible:           0
VmFlags: rd mr mw me mg sd\x20
7f0000000000-7f0040000000 rw-p 00000000 00:00 0\x20
Size:            1048576 kB
Rss:              524288 kB
Pss:                2048 kB
KSM:              520000 kB
VmFlags: rd wr mr mw me ac sd\x20
";

    #[test]
    fn mappings_are_read_as_the_kernel_tells_them() {
        let mappings = parse(TEXT).unwrap();
        let file = Mapping {
            start: 0x55bc_27d9_5000,
            size: 8 << 10,
            rss: 8 << 10,
            pss: 3 << 10,
            private: 5 << 10,
            merged: 4 << 10,
            file: true,
            mergeable: true,
        };
        assert_eq!(mappings[0], file);
        let [_, anonymous] = mappings[..] else { unreachable!("two mappings") };
        assert!(!anonymous.file && !anonymous.mergeable);
        assert_eq!((anonymous.size, anonymous.merged), (1 << 30, 520_000 << 10));
        assert_eq!(parse(""), Ok(Vec::new()), "a thread of the kernel's has none");
    }

    #[test]
    fn what_is_no_such_text_is_refused() {
        for wrong in ["Rss: 4 kB\n", "nothing\n", "1-2 r--p 0 0:0 0\nRss: many kB\n", "1-2 r--p 0 0:0 0\nRss: 4\n"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
