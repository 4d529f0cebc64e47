//! Archives of root file systems: whatever is in them, nothing is written beside the place for it.
#![no_main]

use std::fs;
use std::path::Path;

#[path = "../../crates/platform/src/rootfs/archive.rs"]
mod archive;

const CANARY: &[u8] = b"not to be touched";

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let place = std::env::temp_dir().join(format!("tare-fuzz-archive-{}", std::process::id()));
    let (images, file, beside) = (place.join("a/images"), place.join("a/x.tar"), place.join("a/canary"));
    fs::create_dir_all(&images).expect("a place to unpack");
    fs::write(&file, bytes).expect("an archive");
    fs::write(&beside, CANARY).expect("a file beside");
    match archive::unpacked(&file, &images) {
        Ok(ready) => assert!(ready.is_dir() && ready.parent() == Some(&images)),
        Err(_) => assert!(names(&images).is_empty(), "a refused archive left something"),
    }
    assert_eq!(names(&place.join("a")), ["canary", "images", "x.tar"]);
    assert_eq!(names(&place), ["a"]);
    assert_eq!(fs::read(&beside).expect("the file beside"), CANARY);
    assert!(!Path::new("/tare-fuzz").exists());
    fs::remove_dir_all(&place).expect("all that was unpacked can be removed");
});

fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let mut names: Vec<_> = entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}
