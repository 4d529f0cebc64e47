//! Settings of the whole host: written back as they were found, and nothing but those that tare changes.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{FileType, Mode, OFlags, ResolveFlags, fstat, open, openat2};

use crate::error::{LabError, Result};

/// Below this lies all that may be written back.
pub(crate) const ROOT: &str = "/sys/kernel/mm";

/// What tare changes of the host's memory. A list of settings is read from a file, so it may say anything: nothing else is written.
const CHANGED: [&str; 8] = [
    "ksm/run",
    "ksm/pages_to_scan",
    "ksm/sleep_millisecs",
    "ksm/use_zero_pages",
    "ksm/advisor_mode",
    "ksm/advisor_target_scan_time",
    "ksm/advisor_max_cpu",
    "transparent_hugepage/enabled",
];

/// Longest value, bytes: the widest number of the kernel has 20 digits.
const LONGEST: usize = 20;

/// Writes settings back as found, in the order of the list, and reads them back. `below` is `/sys/kernel/mm`, or its like in a
/// test. False if nothing differed.
///
/// A list with an entry that is not one of tare's settings is refused as a whole, before anything is written. One file that does
/// not take its value does not keep the others from theirs.
///
/// # Errors
/// What was refused, or each file that does not hold what was found, with what it holds.
pub fn put_back_settings(below: &Path, found: &[(PathBuf, String)]) -> std::result::Result<bool, String> {
    let root = open(below, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
        .map_err(|e| LabError::system(format!("open {}", below.display()), e).to_string())?;
    let mut checked = Vec::new();
    for (path, value) in found {
        checked.push((path, check(below, path, value)?, value));
    }
    let mut differed = false;
    let mut refused = vec![None; checked.len()];
    for ((_, inside, value), refused) in checked.iter().zip(&mut refused) {
        match put_back(&root, inside, value) {
            Ok(written) => differed |= written,
            Err(why) => *refused = Some(why.to_string()),
        }
    }
    // All after all were written, for what was written later may have changed what was written before.
    let wrong: Vec<String> = checked
        .iter()
        .zip(refused)
        .filter_map(|((path, inside, value), refused)| {
            let why = refused.or_else(|| match held(&root, inside) {
                Ok(now) => (now != **value).then(|| format!("it holds {now}")),
                Err(e) => Some(e.to_string()),
            })?;
            Some(format!("{} is to hold {value}: {why}", path.display()))
        })
        .collect();
    if wrong.is_empty() { Ok(differed) } else { Err(wrong.join("; ")) }
}

/// Of a setting such as `[none] scan-time`, the word in brackets: what it is set to.
pub fn chosen_word(text: &str) -> Option<&str> {
    Some(text.split_once('[')?.1.split_once(']')?.0)
}

/// The path inside the root, if it is one of tare's settings, plainly written, with a plain value.
fn check<'a>(below: &Path, path: &'a Path, value: &str) -> std::result::Result<&'a Path, String> {
    let refused = |why: &str| format!("refused to write {value:.40?} to {}: {why}", path.display());
    let inside = path.strip_prefix(below).map_err(|_| refused(&format!("it is not below {}", below.display())))?;
    if !inside.components().all(|part| matches!(part, Component::Normal(_))) {
        return Err(refused("its path is not plain"));
    }
    // As text, for two paths with different separators have the same components.
    if !CHANGED.iter().any(|name| below.join(name).as_os_str() == path.as_os_str()) {
        return Err(refused("it is not a setting that tare changes"));
    }
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    if value.is_empty() || value.len() > LONGEST || !value.bytes().all(plain) {
        return Err(refused("that is not a number or a word of the kernel"));
    }
    Ok(inside)
}

/// True if it was written, false if it held that already.
fn put_back(root: &OwnedFd, inside: &Path, value: &str) -> Result<bool> {
    if held(root, inside)? == value {
        return Ok(false);
    }
    // Cut short, for a plain file in a test keeps what a shorter value does not cover; the kernel's own take no notice.
    let mut file = open_inside(root, inside, OFlags::WRONLY | OFlags::TRUNC)?;
    file.write_all(value.as_bytes()).map_err(|e| LabError::system(format!("write {value}"), e))?;
    Ok(true)
}

/// What the setting holds: its chosen word, or all of it.
fn held(root: &OwnedFd, inside: &Path) -> Result<String> {
    let mut text = String::new();
    let file = open_inside(root, inside, OFlags::RDONLY)?;
    file.take(4096).read_to_string(&mut text).map_err(|e| LabError::system("read it", e))?;
    Ok(chosen_word(&text).unwrap_or(&text).trim().to_owned())
}

/// A plain file below the root, on no other file system and through no link.
fn open_inside(root: &OwnedFd, inside: &Path, how: OFlags) -> Result<File> {
    let within = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_XDEV;
    let file = openat2(root, inside, how | OFlags::CLOEXEC | OFlags::NONBLOCK, Mode::empty(), within)
        .map_err(|e| LabError::system("open it", e))?;
    let kind = fstat(&file).map_err(|e| LabError::system("look at it", e))?.st_mode;
    if FileType::from_raw_mode(kind) != FileType::RegularFile {
        return Err(LabError::Refused {
            tried: "write to it".into(),
            why: "it is no plain file".into(),
            remedy: "Look at what took its place".into(),
        });
    }
    Ok(file.into())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use tempfile::TempDir;

    use super::*;

    /// A tree that looks like the kernel's, all at values that tare set.
    fn tree() -> TempDir {
        let tree = tempfile::tempdir().unwrap();
        fs::create_dir_all(tree.path().join("ksm")).unwrap();
        fs::create_dir_all(tree.path().join("transparent_hugepage")).unwrap();
        for (name, held) in [
            ("ksm/run", "1\n"),
            ("ksm/pages_to_scan", "8000\n"),
            ("ksm/sleep_millisecs", "20\n"),
            ("ksm/advisor_mode", "[none] scan-time\n"),
            ("transparent_hugepage/enabled", "always madvise [never]\n"),
            ("ksm/merge_across_nodes", "1\n"),
        ] {
            fs::write(tree.path().join(name), held).unwrap();
        }
        tree
    }

    fn list(tree: &TempDir, entries: &[(&str, &str)]) -> Vec<(PathBuf, String)> {
        entries.iter().map(|(name, value)| (tree.path().join(name), (*value).to_owned())).collect()
    }

    fn held_in(tree: &TempDir, name: &str) -> String {
        fs::read_to_string(tree.path().join(name)).unwrap().trim().to_owned()
    }

    #[test]
    fn what_differs_is_written_and_what_does_not_is_left() {
        let tree = tree();
        let found = list(
            &tree,
            &[
                ("ksm/advisor_mode", "none"),
                ("ksm/pages_to_scan", "100"),
                ("ksm/sleep_millisecs", "20"),
                ("transparent_hugepage/enabled", "madvise"),
                ("ksm/run", "0"),
            ],
        );
        assert_eq!(put_back_settings(tree.path(), &found), Ok(true));
        assert_eq!(held_in(&tree, "ksm/run"), "0");
        assert_eq!(held_in(&tree, "ksm/pages_to_scan"), "100");
        assert_eq!(held_in(&tree, "transparent_hugepage/enabled"), "madvise");
        assert_eq!(held_in(&tree, "ksm/advisor_mode"), "[none] scan-time", "it was so and was not written");
        assert_eq!(put_back_settings(tree.path(), &found), Ok(false));
    }

    #[test]
    fn a_hostile_list_is_refused_as_a_whole() {
        let tree = tree();
        let outside = tempfile::tempdir().unwrap();
        fs::write(outside.path().join("run"), "1").unwrap();
        let path = |name: &str| format!("{}/{name}", tree.path().display());
        for (path, value) in [
            (path("ksm/../ksm/run"), "0"),
            (path("../ksm/run"), "0"),
            (path("ksm/./run"), "0"),
            (path("ksm//run"), "0"),
            (path("ksm/merge_across_nodes"), "0"),
            (path("ksm"), "0"),
            (outside.path().join("run").display().to_string(), "0"),
            ("ksm/run".into(), "0"),
            ("/proc/sys/kernel/core_pattern".into(), "x"),
            (path("ksm/run"), "111111111111111111111"),
            (path("ksm/run"), ""),
            (path("ksm/run"), "0\n1"),
            (path("ksm/run"), "|/bin/sh"),
        ] {
            let mut found = list(&tree, &[("ksm/pages_to_scan", "100")]);
            found.push((path.clone().into(), value.into()));
            let why = put_back_settings(tree.path(), &found).unwrap_err();
            assert!(why.starts_with("refused to write "), "{path}: {why}");
            assert_eq!(held_in(&tree, "ksm/pages_to_scan"), "8000", "{path} {value}");
        }
        assert_eq!(fs::read_to_string(outside.path().join("run")).unwrap(), "1");
    }

    #[test]
    fn no_link_is_followed() {
        let tree = tree();
        let outside = tempfile::tempdir().unwrap();
        fs::write(outside.path().join("run"), "1").unwrap();
        fs::remove_file(tree.path().join("ksm/run")).unwrap();
        symlink(outside.path().join("run"), tree.path().join("ksm/run")).unwrap();
        let found = list(&tree, &[("ksm/run", "0")]);
        assert!(put_back_settings(tree.path(), &found).unwrap_err().contains("ksm/run is to hold 0"));
        fs::remove_dir_all(tree.path().join("ksm")).unwrap();
        symlink(outside.path(), tree.path().join("ksm")).unwrap();
        put_back_settings(tree.path(), &found).unwrap_err();
        assert_eq!(fs::read_to_string(outside.path().join("run")).unwrap(), "1");
    }

    #[test]
    fn one_that_is_refused_is_named_and_keeps_none_from_its_value() {
        let tree = tree();
        let found = list(&tree, &[("ksm/use_zero_pages", "0"), ("ksm/pages_to_scan", "100"), ("ksm/run", "0")]);
        let why = put_back_settings(tree.path(), &found).unwrap_err();
        assert!(why.contains("ksm/use_zero_pages is to hold 0") && !why.contains("run"), "{why}");
        assert_eq!((held_in(&tree, "ksm/pages_to_scan"), held_in(&tree, "ksm/run")), ("100".into(), "0".into()));
    }

    #[test]
    fn the_order_of_the_list_is_kept() {
        // The same file twice: the last one stands, and the first is then not as the list has it.
        let tree = tree();
        let found = list(&tree, &[("ksm/run", "2"), ("ksm/run", "0")]);
        let why = put_back_settings(tree.path(), &found).unwrap_err();
        assert!(why.contains("run is to hold 2: it holds 0"), "{why}");
        assert_eq!(held_in(&tree, "ksm/run"), "0");
    }
}
