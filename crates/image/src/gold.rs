//! Disks with data for guests: made once from a gold copy and kept beside it, then cloned for each guest.

use std::fs::{self, File, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use rustix::fs::{Advice, FlockOperation, fadvise, flock, statvfs};

use crate::disk::{Disk, Format, inspect};
use crate::error::{ImageError, Result, reading, writing};
use crate::{cache, program};

/// Type of the file system of every disk with data.
pub const DATA_FILESYSTEM: &str = "ext4";

/// How the names begin of what is not finished. Only these are swept away: the directory is not ours alone.
const BEGUN: &str = ".new-image-";

/// Blocks of the file system, bytes: left to itself mke2fs takes smaller ones for small disks, and sizes would differ in
/// more than size.
const BLOCK: u64 = 4096;

/// Sizes are rounded up to whole ones of these, bytes.
const ROUNDED: u64 = 1 << 20;

/// The smallest, bytes: an ext4 with a journal.
const SMALLEST: u64 = 16 << 20;

/// What helps where there is no room.
const FULL: &str = "give the workload's data more room, or free some where the cache is (TARE_CACHE)";

/// Writing gigabytes takes its time.
const MAKE_LIMIT: Duration = Duration::from_secs(1800);

/// A disk of at least `size` bytes with an ext4 that holds what the directory `gold` holds, owners and modes kept. It is
/// made when it is asked for the first time, and kept as `NAME-SIZE-ext4.raw` in the directory that `gold` is in; it takes
/// up no more room than what is in it. Nobody may write to it: clone it. Callers at the same time, of other processes too,
/// wait for each other. The program that fills it has the variable `mark` in its environment, by which it is found if
/// this process dies.
///
/// # Errors
/// When `gold` is no directory, its contents do not fit into `size` or onto the disk, `mke2fs` is missing, or the disk
/// cannot be written.
pub fn gold_image(gold: &Path, size: u64, mark: (&str, &str)) -> Result<Disk> {
    let gold = gold.canonicalize().map_err(reading(gold))?;
    let size = size.max(SMALLEST).next_multiple_of(ROUNDED);
    let (path, folder) = place(&gold, size)?;
    if let Some(disk) = find(&path, size)? {
        return Ok(disk);
    }
    let lock_path = folder.join(".image.lock");
    let lock = File::create(&lock_path).map_err(writing(&lock_path))?;
    flock(&lock, FlockOperation::LockExclusive).map_err(|error| writing(&lock_path)(error.into()))?;
    sweep(&folder)?;
    if let Some(disk) = find(&path, size)? {
        return Ok(disk);
    }
    has_room(&gold, &folder)?;
    let readable = Permissions::from_mode(0o644);
    let image = tempfile::Builder::new().prefix(BEGUN).permissions(readable).tempfile_in(&folder);
    let image = image.map_err(writing(&path))?;
    image.as_file().set_len(size).map_err(writing(&path))?;
    fill(&gold, image.path(), size, mark)?;
    image.as_file().sync_all().map_err(writing(&path))?;
    image.persist(&path).map(drop).map_err(|error| writing(&path)(error.error))?;
    inspect(&path, Format::Raw)
}

/// Where the disk is kept, and the directory that it is in.
fn place(gold: &Path, size: u64) -> Result<(PathBuf, PathBuf)> {
    let (Some(folder), Some(name), true) = (gold.parent(), gold.file_name(), gold.is_dir()) else {
        let tried = format!("make a disk of the gold copy {}", gold.display());
        return Err(ImageError::new(tried, "it is no directory with a name", "report this: a workload names it"));
    };
    let name = format!("{}-{size}-{DATA_FILESYSTEM}.raw", name.to_string_lossy());
    Ok((folder.join(name), folder.to_owned()))
}

fn find(path: &Path, size: u64) -> Result<Option<Disk>> {
    match path.metadata() {
        Ok(seen) if seen.len() == size => inspect(path, Format::Raw).map(Some),
        _ => Ok(None),
    }
}

/// Removes what was begun and given up. Only for who holds the lock.
fn sweep(folder: &Path) -> Result<()> {
    for entry in fs::read_dir(folder).map_err(reading(folder))? {
        let path = entry.map_err(reading(folder))?.path();
        if path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(BEGUN.as_bytes())) {
            fs::remove_file(&path).map_err(writing(&path))?;
        }
    }
    Ok(())
}

/// Refuses what has no room beside the gold copy before minutes were spent on it. Tables of the file system are not
/// counted: where only they are too much, `mke2fs` says so.
fn has_room(gold: &Path, folder: &Path) -> Result<()> {
    let found = statvfs(folder).map_err(|error| reading(folder)(error.into()))?;
    let (needed, free) = (cache::room(gold)?, found.f_bavail.saturating_mul(found.f_frsize));
    if needed <= free {
        return Ok(());
    }
    let tried = format!("make a disk with what is in {}", gold.display());
    let why =
        format!("it takes up {} MiB and {} has {} MiB free", needed.div_ceil(1 << 20), folder.display(), free >> 20);
    Err(ImageError::new(tried, why, FULL))
}

fn fill(gold: &Path, image: &Path, size: u64, mark: (&str, &str)) -> Result<()> {
    let seen = gold.metadata().map_err(reading(gold))?;
    // Nothing is left to be initialised while it is mounted, which would be while it is measured; and none of it is
    // kept for root, since servers do not run as root.
    let extended = format!("lazy_itable_init=0,lazy_journal_init=0,root_owner={}:{}", seen.uid(), seen.gid());
    let mut command = Command::new(program::find("mke2fs", "e2fsprogs")?);
    command.args(["-q", "-F", "-t", DATA_FILESYSTEM, "-b", &BLOCK.to_string(), "-m", "0", "-E", &extended, "-d"]);
    command.arg(gold).arg(image).env(mark.0, mark.1);
    let tried = format!("make a disk of {} MiB with what is in {}", size >> 20, gold.display());
    program::run(&mut command, &tried, MAKE_LIMIT).map(drop).map_err(|error| {
        let full = error.why.contains("Could not allocate") || error.why.contains("No space left");
        if full { ImageError { remedy: FULL.to_owned(), ..error } } else { error }
    })
}

/// Has a file or block device written out to its disk and forgotten by the host's page cache, so that who reads it next
/// reads the disk. What a file system keeps only in memory (tmpfs) stays there.
///
/// # Errors
/// When it cannot be opened or written out.
pub fn make_cold(path: &Path) -> Result<()> {
    let file = File::open(path).map_err(reading(path))?;
    file.sync_all().map_err(writing(path))?;
    // Advice: a page that somebody else uses stays.
    fadvise(&file, 0, None, Advice::DontNeed).map_err(|error| reading(path)(error.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MARK: (&str, &str) = ("TEST_MARK", "1");

    /// A gold copy with a file of another owner's in it; `None` where there are no programs for it.
    fn gold() -> Option<tempfile::TempDir> {
        if let Err(error) = program::find("mke2fs", "e2fsprogs") {
            eprintln!("SKIPPED: {error}");
            return None;
        }
        let place = tempfile::tempdir().unwrap();
        fs::create_dir_all(place.path().join("tree/data")).unwrap();
        fs::write(place.path().join("tree/data/table"), vec![7; 300_000]).unwrap();
        fs::set_permissions(place.path().join("tree/data"), Permissions::from_mode(0o700)).unwrap();
        // Without root the owners stay ours, and are kept all the same.
        let _ = std::os::unix::fs::chown(place.path().join("tree/data"), Some(65534), Some(65534));
        Some(place)
    }

    fn debugfs(image: &Path, request: &str) -> Option<String> {
        let program = program::find("debugfs", "e2fsprogs").ok()?;
        let ran = Command::new(program).args(["-R", request]).arg(image).output().unwrap();
        Some(String::from_utf8_lossy(&ran.stdout).into_owned())
    }

    #[test]
    fn a_disk_holds_what_the_gold_copy_holds_and_is_made_once() {
        let Some(place) = gold() else { return };
        let tree = place.path().join("tree");
        let disks: Vec<Disk> = std::thread::scope(|scope| {
            let threads: Vec<_> =
                (0..3).map(|_| scope.spawn(|| gold_image(&tree, 40_000_001, MARK).unwrap())).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert!(disks.windows(2).all(|pair| pair[0] == pair[1]), "{disks:?}");
        let disk = &disks[0];
        assert_eq!(disk.virtual_size, 39 << 20);
        let seen = disk.path.metadata().unwrap();
        assert!(seen.blocks() * 512 < 8 << 20, "it takes up {} blocks", seen.blocks());
        assert_eq!(gold_image(&tree, 40_000_001, MARK).unwrap(), *disk);
        assert_eq!(disk.path.metadata().unwrap().ino(), seen.ino(), "it was made again");
        let owner = tree.join("data").metadata().unwrap().uid();
        if let Some(said) = debugfs(&disk.path, "stat /data") {
            assert!(said.contains("Mode:  0700"), "{said}");
            assert!(said.contains(&format!("User: {owner:>5}")) || said.contains(&owner.to_string()), "{said}");
        }
        if let Some(said) = debugfs(&disk.path, "stat /data/table") {
            assert!(said.contains("Size: 300000"), "{said}");
        }
        make_cold(&disk.path).unwrap();
    }

    #[test]
    fn what_does_not_fit_or_is_no_directory_is_reported() {
        let Some(place) = gold() else { return };
        let tree = place.path().join("tree");
        fs::write(tree.join("large"), vec![1; 20 << 20]).unwrap();
        let error = gold_image(&tree, 16 << 20, MARK).unwrap_err();
        assert!(error.remedy.contains("more room"), "{error}");
        let left: Vec<_> = fs::read_dir(place.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert!(left.iter().all(|name| !name.to_string_lossy().starts_with(BEGUN)), "{left:?}");
        assert!(gold_image(&tree.join("large"), 16 << 20, MARK).unwrap_err().why.contains("no directory"));
        assert!(gold_image(&tree.join("none"), 16 << 20, MARK).is_err());
        fs::write(place.path().join(format!("{BEGUN}x")), "half").unwrap();
        gold_image(&tree, 64 << 20, MARK).unwrap();
        assert!(!place.path().join(format!("{BEGUN}x")).exists(), "what was given up is swept away");
    }

    /// Runs itself again in a mount namespace with a small file system.
    #[test]
    fn a_full_disk_is_reported_and_nothing_is_left() {
        const TEST: &str = "gold::tests::a_full_disk_is_reported_and_nothing_is_left";
        if let Some(place) = std::env::var_os("TEST_FULL") {
            return is_full(Path::new(&place));
        }
        if gold().is_none() {
            return;
        }
        let place = tempfile::tempdir().unwrap();
        let script = "mount -t tmpfs -o size=8m full \"$2\" || exit 77; exec \"$0\" --exact --nocapture \"$1\"";
        let mut command = Command::new("unshare");
        command.args(["--mount", "--propagation", "private", "sh", "-c", script]);
        command.arg(std::env::current_exe().unwrap()).arg(TEST).arg(place.path()).env("TEST_FULL", place.path());
        match command.output() {
            Ok(ran) if ran.status.code() != Some(77) && !ran.stdout.is_empty() => {
                assert!(ran.status.success(), "{ran:?}")
            }
            other => eprintln!("SKIPPED: cannot mount a file system: {other:?}"),
        }
    }

    fn is_full(place: &Path) {
        let tree = place.join("tree");
        fs::create_dir(&tree).unwrap();
        // More than is free beside it; and less, but then what the file system adds is too much.
        for (bytes, reason) in [(5 << 20, "free"), (4080 << 10, "mke2fs failed")] {
            fs::write(tree.join("table"), vec![7; bytes]).unwrap();
            let error = gold_image(&tree, 64 << 20, MARK).unwrap_err();
            assert!(error.why.contains(reason) && error.remedy.contains("TARE_CACHE"), "{error}");
            let mut left: Vec<_> = fs::read_dir(place).unwrap().map(|entry| entry.unwrap().file_name()).collect();
            left.sort();
            assert_eq!(left, [".image.lock", "tree"]);
        }
    }
}
