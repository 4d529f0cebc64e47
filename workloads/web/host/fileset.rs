//! The files of a site: which there are, how long each is, and making them.

use std::fs::{self, File, FileTimes};
use std::io::Write;
use std::path::Path;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use crate::web::spec::{FileRef, FileSet, SiteModel};
use tare_model::marker::{MARKER_BYTES, MARKER_EVERY, file_id, marker};

use super::check::letter;
use crate::Failure;
use crate::failure::file;

/// 2005-01-01T00:00:00Z, seconds since 1970: when every file was last modified, as far as anybody can see.
const MODIFIED_S: u64 = 1_104_537_600;
/// So much is written at once, bytes.
const AT_ONCE: u64 = 256 * MARKER_EVERY;
/// What a file or directory takes on a disk beside its blocks, bytes: its inode and its name.
const BESIDE: u64 = 512;

/// A file: the path of its address, and its length in bytes.
pub(super) type Planned = (String, u64);

/// How many there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Totals {
    /// Files.
    pub files: u64,
    /// Their lengths together, bytes.
    pub bytes: u64,
    /// What they take on a disk, about, bytes.
    pub disk_bytes: u64,
}

impl Totals {
    fn add(&mut self, files: &[Planned], times: u64) {
        let disk = |bytes: u64| bytes.div_ceil(MARKER_EVERY) * MARKER_EVERY + BESIDE;
        // Each batch has a directory of its own.
        let batch = files.iter().map(|(_, bytes)| disk(*bytes)).sum::<u64>() + MARKER_EVERY + BESIDE;
        self.files += times * files.len() as u64;
        self.bytes += times * files.iter().map(|(_, bytes)| bytes).sum::<u64>();
        self.disk_bytes += times * batch;
    }
}

/// The files of a site, in batches that can be made independently: the fixed ones, then those of each user or directory.
#[derive(Debug, Clone)]
pub(super) struct Planning<'a> {
    site: &'a str,
    fixed: Vec<Planned>,
    files: &'a FileSet,
}

impl<'a> Planning<'a> {
    pub fn new(model: &'a SiteModel) -> Self {
        let embedded = model.states.iter().flat_map(|state| &state.embedded);
        let fixed = embedded.filter_map(|embedded| match &embedded.file {
            FileRef::Fixed { path, bytes } => Some((path.clone(), *bytes)),
            _ => None,
        });
        Self { site: &model.name, fixed: fixed.collect(), files: &model.files }
    }

    fn users(&self) -> u64 {
        self.files.checks.as_ref().map_or(0, |checks| checks.users.into())
    }

    fn products(&self) -> u64 {
        self.files.products.as_ref().map_or(0, |products| products.directories.into())
    }

    fn downloads(&self) -> u64 {
        self.files.downloads.as_ref().map_or(0, |downloads| downloads.directories.into())
    }

    /// Number of batches.
    pub fn batches(&self) -> u64 {
        1 + self.users() + self.products() + self.downloads()
    }

    /// The files of a batch.
    pub fn batch(&self, number: u64) -> Vec<Planned> {
        let Some(user) = number.checked_sub(1) else { return self.fixed.clone() };
        let Some(directory) = user.checked_sub(self.users()) else { return self.checks_of(user + 1) };
        let Some(download) = directory.checked_sub(self.products()) else { return self.products_in(directory) };
        self.downloads_in(download)
    }

    fn checks_of(&self, user: u64) -> Vec<Planned> {
        let Some(checks) = &self.files.checks else { return Vec::new() };
        let sides = [("front", checks.front), ("back", checks.back)];
        let of = |i: u64| {
            let check = user % 100_000 * 10 + i;
            sides.map(|(side, (base, step))| {
                (format!("/files/{}/checks/{user:010}/{check:06}-{side}.gif", self.site), base + step * i)
            })
        };
        (0..u64::from(checks.checks)).flat_map(of).collect()
    }

    fn products_in(&self, directory: u64) -> Vec<Planned> {
        let Some(products) = &self.files.products else { return Vec::new() };
        let of = |item: u64| {
            products.classes.iter().enumerate().map(move |(class, (base, step))| {
                let class = letter(class);
                (format!("/files/{}/products/{directory:05}/{item}-{class}.jpg", self.site), base + step * item)
            })
        };
        (0..u64::from(products.items)).flat_map(of).collect()
    }

    fn downloads_in(&self, directory: u64) -> Vec<Planned> {
        let Some(downloads) = &self.files.downloads else { return Vec::new() };
        let of = |(number, class): (usize, &crate::web::spec::DownloadClass)| {
            let (base, step) = class.size;
            let items = 0..class.within.len() as u64;
            let path = move |item: u64| format!("/files/{}/downloads/{directory:05}/{number}-{item}.bin", self.site);
            items.map(|item| (path(item), base + step * item)).collect::<Vec<_>>()
        };
        downloads.classes.iter().enumerate().flat_map(of).collect()
    }

    /// How many there are, without looking at each.
    pub fn totals(&self) -> Totals {
        let mut totals = Totals::default();
        totals.add(&self.fixed, 1);
        // Check numbers differ from user to user, lengths do not.
        totals.add(&self.checks_of(1), self.users());
        totals.add(&self.products_in(0), self.products());
        totals.add(&self.downloads_in(0), self.downloads());
        totals
    }

    /// Makes all files below `root`, on as many threads as there are CPUs. `done` counts their bytes; `stop` ends it early.
    ///
    /// # Errors
    /// When a file cannot be written.
    pub fn make(&self, root: &Path, stop: &AtomicBool, done: &AtomicU64) -> Result<(), Failure> {
        let (next, failed) = (AtomicU64::new(0), Mutex::new(None));
        let work = || {
            let mut blocks = Blocks::new();
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= self.batches() || stop.load(Ordering::Relaxed) {
                    return;
                }
                if let Err(error) = make_batch(root, &self.batch(number), &mut blocks, stop, done) {
                    stop.store(true, Ordering::Relaxed);
                    failed.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
                    return;
                }
            }
        };
        let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        std::thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(work);
            }
        });
        let failed = failed.into_inner().unwrap_or_else(PoisonError::into_inner);
        failed.map_or(Ok(()), Err)
    }
}

fn make_batch(
    root: &Path,
    batch: &[Planned],
    blocks: &mut Blocks,
    stop: &AtomicBool,
    done: &AtomicU64,
) -> Result<(), Failure> {
    let mut made = None;
    for (address, bytes) in batch {
        let path = root.join(address.trim_start_matches('/'));
        let folder = path.parent().unwrap_or(root);
        if made.as_deref() != Some(folder) {
            fs::create_dir_all(folder).map_err(file("make", folder))?;
            made = Some(folder.to_owned());
        }
        let written = File::create(&path).and_then(|mut opened| {
            blocks.write(&mut opened, address, *bytes, stop, done)?;
            let modified = SystemTime::UNIX_EPOCH + Duration::from_secs(MODIFIED_S);
            opened.set_times(FileTimes::new().set_modified(modified).set_accessed(modified))
        });
        written.map_err(file("write", &path))?;
        if stop.load(Ordering::Relaxed) {
            return Ok(());
        }
    }
    Ok(())
}

/// Blocks of filler, whose markers are written over for each file.
struct Blocks {
    bytes: Vec<u8>,
}

impl Blocks {
    fn new() -> Self {
        // Printable, and not a row of the same byte.
        let filler = (0..AT_ONCE).map(|at| b'0' + ((at % MARKER_EVERY * 7 + at % MARKER_EVERY / 64) % 74) as u8);
        Self { bytes: filler.collect() }
    }

    /// Writes a file of that address and length.
    fn write(
        &mut self,
        to: &mut File,
        address: &str,
        bytes: u64,
        stop: &AtomicBool,
        done: &AtomicU64,
    ) -> std::io::Result<()> {
        let id = file_id(address.as_bytes());
        let mut block = 0;
        let mut left = bytes;
        while left > 0 && !stop.load(Ordering::Relaxed) {
            let part = usize::try_from(left.min(AT_ONCE)).unwrap_or(self.bytes.len());
            let step = usize::try_from(MARKER_EVERY).unwrap_or(usize::MAX);
            for start in (0..part).step_by(step) {
                self.bytes[start..start + MARKER_BYTES].copy_from_slice(&marker(id, block));
                block += 1;
            }
            to.write_all(&self.bytes[..part])?;
            left -= part as u64;
            done.fetch_add(part as u64, Ordering::Relaxed);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use super::*;
    use crate::web::compile::{compile, file_set};
    use crate::web::tables::Site;

    /// A site for so many sessions.
    fn site(site: Site, sessions: u32) -> SiteModel {
        let tables = site.tables().unwrap();
        compile(&tables, file_set(&tables.files, None, sessions))
    }

    #[test]
    fn file_sets_are_of_the_published_size() {
        let support = site(Site::Support, 2200);
        let totals = Planning::new(&support).totals();
        let images: u64 = Planning::new(&support).fixed.iter().map(|(_, bytes)| bytes).sum();
        assert_eq!(totals.bytes - images, 550 * 68_472_021, "37.7 GB");
        let banking = site(Site::Banking, 10);
        let planning = Planning::new(&banking);
        assert_eq!(planning.batches(), 501);
        assert_eq!(planning.totals().files, 500 * 20 + planning.fixed.len() as u64);
        let ecommerce = site(Site::Ecommerce, 3);
        assert_eq!(Planning::new(&ecommerce).batches(), 16);
    }

    #[test]
    fn totals_are_what_the_batches_add_up_to_and_paths_are_unlike() {
        for one in [site(Site::Banking, 1), site(Site::Ecommerce, 1), site(Site::Support, 9)] {
            let planning = Planning::new(&one);
            let all: Vec<Planned> = (0..planning.batches()).flat_map(|number| planning.batch(number)).collect();
            let totals = planning.totals();
            assert_eq!((totals.files, totals.bytes), (all.len() as u64, all.iter().map(|(_, bytes)| bytes).sum()));
            let paths: std::collections::BTreeSet<&str> = all.iter().map(|(path, _)| path.as_str()).collect();
            assert_eq!(paths.len(), all.len(), "{}", one.name);
        }
        let last = Planning::new(&site(Site::Banking, 1)).batch(50);
        assert_eq!(last[19], ("/files/banking/checks/0000000050/000509-back.gif".to_owned(), 5458 + 9 * 334));
    }

    #[test]
    fn files_have_their_length_their_markers_and_their_age() {
        let folder = tempfile::tempdir().unwrap();
        let mut one = site(Site::Ecommerce, 1);
        let classes = vec![crate::web::spec::DownloadClass { share: 1.0, size: (0, 4096), within: vec![0.2; 3] }];
        one.files.downloads = Some(crate::web::spec::DownloadFiles { directories: 1, zipf: 0.0, classes });
        one.files.products = None;
        one.files.downloads.as_mut().unwrap().classes[0].size = (AT_ONCE + 4096 + 7, 1);
        let done = AtomicU64::new(0);
        let planning = Planning::new(&one);
        planning.make(folder.path(), &AtomicBool::new(false), &done).unwrap();
        assert_eq!(done.load(Ordering::Relaxed), planning.totals().bytes);
        let mut seen = 0;
        for (address, bytes) in (0..planning.batches()).flat_map(|number| planning.batch(number)) {
            let path = folder.path().join(address.trim_start_matches('/'));
            let content = fs::read(&path).unwrap();
            assert_eq!(content.len() as u64, bytes, "{address}");
            for (block, part) in content.chunks(4096).enumerate() {
                let expected = marker(file_id(address.as_bytes()), block as u64);
                let length = part.len().min(MARKER_BYTES);
                assert_eq!(part[..length], expected[..length], "{address}, block {block}");
                assert!(part[length..].iter().all(u8::is_ascii_graphic));
                seen += 1;
            }
            assert_eq!(path.metadata().unwrap().mtime(), MODIFIED_S.cast_signed());
        }
        assert!(seen > 700, "{seen} blocks");
    }

    #[test]
    fn it_ends_when_it_is_asked_to_and_when_nothing_can_be_written() {
        let folder = tempfile::tempdir().unwrap();
        let one = site(Site::Banking, 20);
        Planning::new(&one).make(folder.path(), &AtomicBool::new(true), &AtomicU64::new(0)).unwrap();
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
        let taken = folder.path().join("files");
        fs::write(&taken, "").unwrap();
        let error = Planning::new(&one).make(folder.path(), &AtomicBool::new(false), &AtomicU64::new(0)).unwrap_err();
        assert!(error.to_string().contains("cannot make"), "{error}");
    }
}
