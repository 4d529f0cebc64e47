//! What every guest is given: the server with its runtime, the files of the site, and `pages.tsv`, made once and kept.

use std::fs::{self, DirBuilder, File};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::bundle::Bundle;
use crate::web::spec::SiteModel;
use rustix::fs::syncfs;
use tare_model::ByteSize;
use tare_model::guest::GuestData;

use super::compile::pages;
use super::fileset::{Planning, Totals};
use super::tables::Tables;
use crate::failure::file;
use crate::gold::{self, Free, Held, TREE, found_or_made, shown};
use crate::{Failure, SetupSite, WorkloadError};

/// Raised when what is made here changes in a way that the rest of the key does not tell.
const FORMAT: u32 = 1;
/// How the names of all file sets begin.
const KIND: &str = "web-";
/// In a gold copy, beside what guests are shown: the bundle that is in it.
const MADE_WITH: &str = "bundle";
/// What the server makes its pages from.
const PAGES: &str = "pages.tsv";
/// Bytes for which a file system made with its defaults has an inode.
const INODE_EVERY: u64 = 16_384;
/// Between two words about how far the files have come.
const TELL_EVERY: Duration = Duration::from_secs(10);
const MIB: u64 = 1 << 20;

/// What a guest writes to a disk with its data, although it is for reading, bytes: when it was mounted, and when files were read.
pub(super) const OVERLAY_BYTES: u64 = 16 * MIB;
/// About what a bundle takes, bytes, where it is not there to be measured.
pub(super) const BUNDLE_BYTES: u64 = 96 * MIB;

/// What is made.
pub(super) struct Making<'a> {
    pub site: &'a SetupSite<'a>,
    pub tables: &'a Tables,
    /// The site with the largest file set.
    pub model: &'a SiteModel,
    pub bundle: &'a Bundle,
}

/// Disk for one guest where that is a disk of its own, bytes: what is in it, what its file system takes, and enough for an
/// inode a file.
fn room(bytes: u64, files: u64) -> u64 {
    let inodes = (files + files / 8).saturating_mul(INODE_EVERY);
    bytes.saturating_add(bytes / 4 + 64 * MIB).max(inodes)
}

/// A name for all that decides what is in the copy.
fn key(tables: &Tables, model: &SiteModel, bundle: &Bundle) -> String {
    let made_of = format!(
        "format {FORMAT}\nbundle {}\npages {}\nfiles {:?}\nimages {:?}\n",
        bundle.place.display(),
        pages(tables),
        model.files,
        Planning::new(model).batch(0),
    );
    gold::name(&format!("{KIND}{}", tables.name), &made_of)
}

/// Where the gold copy is, or would be, whoever made it.
pub(super) fn place(cache: &Path, tables: &Tables, model: &SiteModel, bundle: &Bundle) -> PathBuf {
    gold::place_of(cache, &key(tables, model, bundle)).join(TREE)
}

impl Making<'_> {
    /// Finds the gold copy or makes it. It stays where it is as long as what is given with it is held.
    ///
    /// # Errors
    /// When there is no room, or a file cannot be written.
    pub fn gold(&self) -> Result<(GuestData, Held), WorkloadError> {
        let (place, held) = found_or_made(self.site, key(self.tables, self.model, self.bundle), self)?;
        let totals = Planning::new(self.model).totals();
        let size = room(totals.disk_bytes + self.bundle.bytes, totals.files);
        Ok((GuestData { gold: place.join(TREE), size: ByteSize(size), shared: true, log: None }, held))
    }

    fn bundle_name(&self) -> String {
        self.bundle.place.display().to_string()
    }

    /// Refuses what cannot fit before a byte is written.
    fn fits(&self, folder: &Path, totals: &Totals) -> Result<(), WorkloadError> {
        let need = totals.disk_bytes + self.bundle.bytes + 16 * MIB;
        let Free { bytes: free, files: inodes } = Free::of(folder)?;
        let tried = || format!("make the file set of the site `{}`", self.tables.name);
        let remedy = "ask for fewer users or directories a session (`users-per-session`, `directories-per-session`), write \
                      `file-sessions`, or set TARE_CACHE to a directory on a larger disk";
        if free < need {
            let why = format!(
                "file set larger than the disk: {} files take {} in {}, which has {}",
                totals.files,
                shown(need),
                folder.display(),
                shown(free)
            );
            return Err(Failure::new(tried(), why, remedy).into());
        }
        if let Some(inodes) = inodes.filter(|inodes| *inodes < totals.files) {
            let why =
                format!("{} files are more than the {inodes} that {} has room for", totals.files, folder.display());
            return Err(Failure::new(tried(), why, remedy).into());
        }
        Ok(())
    }

    /// Makes all that is in the copy, in a directory that is not yet in its place.
    fn fill(&self, partial: &Path, planning: &Planning<'_>, totals: &Totals) -> Result<(), WorkloadError> {
        let tree = partial.join(TREE);
        DirBuilder::new().recursive(true).mode(0o755).create(&tree).map_err(file("make", &tree))?;
        let path = partial.join(MADE_WITH);
        fs::write(&path, self.bundle_name()).map_err(file("write", &path))?;
        link_all(&self.bundle.place, &tree)?;
        let path = tree.join(PAGES);
        fs::write(&path, pages(self.tables)).map_err(file("write", &path))?;
        let (stop, done) = (AtomicBool::new(false), AtomicU64::new(0));
        std::thread::scope(|scope| {
            let work = scope.spawn(|| planning.make(&tree, &stop, &done));
            let mut noted = Instant::now();
            let mut given_up = Ok(());
            while !work.is_finished() && given_up.is_ok() {
                given_up = gold::at_host(self.site).pause();
                if noted.elapsed() >= TELL_EVERY {
                    noted = Instant::now();
                    let percent = 100.0 * done.load(Ordering::Relaxed) as f64 / totals.bytes.max(1) as f64;
                    (self.site.note)(&format!("making the file set: {percent:.0} % of {}", shown(totals.bytes)));
                }
            }
            if given_up.is_err() {
                stop.store(true, Ordering::Relaxed);
            }
            let made = work.join().unwrap_or_else(|_| {
                Err(Failure::new("make the file set", "a thread panicked", "report this: it is a defect of tare"))
            });
            given_up.and(made.map_err(Into::into))
        })?;
        // One call for all: a file at a time takes as long again as writing them.
        File::open(partial)
            .and_then(|opened| syncfs(&opened).map_err(Into::into))
            .map_err(file("write out", partial))
            .map_err(Into::into)
    }
}

impl gold::Making for Making<'_> {
    fn noun(&self) -> &'static str {
        "file set"
    }

    fn is_whole(&self, place: &Path) -> bool {
        place.is_dir()
    }

    /// Of file sets with another bundle nobody will ask for again.
    fn is_stale(&self, name: &str, place: &Path) -> bool {
        is_of_another(name, place, &self.bundle_name())
    }

    fn make(&self, folder: &Path, partial: &Path) -> Result<(), WorkloadError> {
        let planning = Planning::new(self.model);
        let totals = planning.totals();
        self.fits(folder, &totals)?;
        let (files, size) = (totals.files, shown(totals.bytes));
        let note = self.site.note;
        note(&format!(
            "making the file set of `{}`: {files} files, {size}; it is kept for later runs",
            self.tables.name
        ));
        let began = Instant::now();
        self.fill(partial, &planning, &totals)?;
        note(&format!("file set made: {files} files, {size} in {:.1} s", began.elapsed().as_secs_f64()));
        Ok(())
    }
}

/// Whether a gold copy of that name is a file set with another bundle.
fn is_of_another(name: &str, place: &Path, bundle: &str) -> bool {
    name.starts_with(KIND) && fs::read_to_string(place.join(MADE_WITH)).is_ok_and(|with| with.trim() != bundle)
}

/// Shows in `to` what is in `from`, by hard links where that is the same file system, else by copies.
fn link_all(from: &Path, to: &Path) -> Result<(), Failure> {
    for entry in fs::read_dir(from).map_err(file("read", from))? {
        let path = entry.map_err(file("read", from))?.path();
        let target = to.join(path.file_name().unwrap_or_default());
        let seen = path.symlink_metadata().map_err(file("look at", &path))?;
        if seen.is_dir() {
            fs::create_dir_all(&target).map_err(file("make", &target))?;
            link_all(&path, &target)?;
        } else if seen.is_symlink() {
            let leads = fs::read_link(&path).map_err(file("read", &path))?;
            std::os::unix::fs::symlink(leads, &target).map_err(file("link", &target))?;
        } else if fs::hard_link(&path, &target).is_err() {
            fs::copy(&path, &target).map(drop).map_err(file("copy to", &target))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use super::*;

    #[test]
    fn what_is_linked_is_the_same_file() {
        let folder = tempfile::tempdir().unwrap();
        let (from, to) = (folder.path().join("from"), folder.path().join("to"));
        fs::create_dir_all(from.join("bin")).unwrap();
        fs::create_dir(&to).unwrap();
        fs::write(from.join("bin/java"), "x").unwrap();
        std::os::unix::fs::symlink("bin/java", from.join("java")).unwrap();
        link_all(&from, &to).unwrap();
        let inode = |path: &Path| path.metadata().unwrap().ino();
        assert_eq!(inode(&from.join("bin/java")), inode(&to.join("bin/java")));
        assert_eq!(fs::read_link(to.join("java")).unwrap(), Path::new("bin/java"));
    }

    #[test]
    fn file_sets_with_another_bundle_are_stale_and_other_copies_are_not() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join(MADE_WITH), "web-1\n").unwrap();
        assert!(is_of_another("web-banking-0", folder.path(), "web-2"));
        assert!(!is_of_another("web-banking-0", folder.path(), "web-1"));
        assert!(!is_of_another("store-0", folder.path(), "web-2"));
        assert!(!is_of_another("web-banking-0", &folder.path().join("without"), "web-2"));
    }

    #[test]
    fn a_guests_disk_has_an_inode_for_every_file() {
        assert_eq!(room(1 << 30, 10), (1 << 30) + (1 << 28) + 64 * MIB);
        assert_eq!(room(1 << 30, 1_000_000), 1_125_000 * INODE_EVERY);
    }
}
