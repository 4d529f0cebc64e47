//! What every guest is given: the server with its runtime, the files of the site, and `pages.tsv`, made once and kept.

use std::fs::{self, DirBuilder, File};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rustix::fs::{statvfs, syncfs};
use sha2::{Digest, Sha256};
use tare_model::ByteSize;
use tare_model::guest::GuestData;
use tare_model::web::SiteModel;
use tare_wire::{ExecSpec, Reply, Request};

use super::compile::pages;
use super::error::{WebError, file};
use super::fileset::{Planning, Totals};
use super::keep::{Held, PREFIX, Place, note_payload, remove};
use super::payload::Payload;
use super::tables::Tables;
use crate::{AheadSite, WorkSite, WorkloadError};

/// Raised when what is made here changes in a way that the rest of the key does not tell.
const FORMAT: u32 = 1;
/// In tare's cache: all gold copies.
const FOLDER: &str = "gold";
/// In a gold copy: what guests are shown.
const TREE: &str = "tree";
/// What the server makes its pages from.
const PAGES: &str = "pages.tsv";
/// Bytes for which a file system made with its defaults has an inode.
const INODE_EVERY: u64 = 16_384;
/// Between two looks at how far the files have come.
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// Longest that such a pause may take.
const LOOK_AT_MOST: Duration = Duration::from_secs(20);
/// Between two words about how far the files have come.
const TELL_EVERY: Duration = Duration::from_secs(10);
const MIB: u64 = 1 << 20;

/// What a guest writes to a disk with its data, although it is for reading, bytes: when it was mounted, and when files were read.
pub(super) const OVERLAY_BYTES: u64 = 16 * MIB;
/// About what a payload takes, bytes, where it is not there to be measured.
pub(super) const PAYLOAD_BYTES: u64 = 96 * MIB;

/// What is made.
pub(super) struct Making<'a> {
    pub site: &'a AheadSite<'a>,
    pub tables: &'a Tables,
    /// The site with the largest file set.
    pub model: &'a SiteModel,
    pub payload: &'a Payload,
}

/// Disk for one guest where that is a disk of its own, bytes: what is in it, what its file system takes, and enough for an
/// inode a file.
fn room(bytes: u64, files: u64) -> u64 {
    let inodes = (files + files / 8).saturating_mul(INODE_EVERY);
    bytes.saturating_add(bytes / 4 + 64 * MIB).max(inodes)
}

/// So many bytes for people.
pub(super) fn shown(bytes: u64) -> String {
    if bytes >= 1 << 30 {
        format!("{:.1} GiB", bytes as f64 / (1u64 << 30) as f64)
    } else {
        format!("{:.0} MiB", bytes as f64 / MIB as f64)
    }
}

/// A name for all that decides what is in the copy.
fn key(tables: &Tables, model: &SiteModel, payload: &Payload) -> String {
    let made_of = format!(
        "format {FORMAT}\npayload {}\npages {}\nfiles {:?}\nimages {:?}\n",
        payload.place.display(),
        pages(tables),
        model.files,
        Planning::new(model).batch(0),
    );
    let digest = Sha256::digest(made_of.as_bytes());
    let key: String = digest.iter().take(12).map(|byte| format!("{byte:02x}")).collect();
    format!("{PREFIX}{}-{key}", tables.name)
}

/// Where the gold copy is, or would be, whoever made it.
pub(super) fn place(cache: &Path, tables: &Tables, model: &SiteModel, payload: &Payload) -> PathBuf {
    cache.join(FOLDER).join(key(tables, model, payload)).join(TREE)
}

impl Making<'_> {
    /// Finds the gold copy or makes it. It stays where it is as long as what is given with it is held.
    ///
    /// # Errors
    /// When there is no room, or a file cannot be written.
    pub fn gold(&self) -> Result<(GuestData, Held), WorkloadError> {
        let folder = self.site.cache.join(FOLDER);
        DirBuilder::new().recursive(true).mode(0o755).create(&folder).map_err(file("make", &folder))?;
        let place = Place::new(&folder, key(self.tables, self.model, self.payload));
        let told = AtomicBool::new(false);
        let pause = || {
            if !told.swap(true, Ordering::Relaxed) {
                (self.site.note)("another run makes the same file set; waiting for it");
            }
            self.pause()
        };
        let held = loop {
            let held = place.share(&pause)?;
            if place.whole().is_dir() {
                break held;
            }
            drop(held);
            let _own = place.own(&pause)?;
            place.sweep(&self.payload_name())?;
            // Meanwhile another may have made it.
            if !place.whole().is_dir() {
                self.make(&folder, &place)?;
            }
        };
        let totals = Planning::new(self.model).totals();
        let size = room(totals.disk_bytes + self.payload.bytes, totals.files);
        let gold = place.whole().join(TREE);
        Ok((GuestData { gold, size: ByteSize(size), shared: true }, held))
    }

    fn payload_name(&self) -> String {
        self.payload.place.display().to_string()
    }

    /// A pause that the agent makes, which ends it when somebody wishes to stop.
    fn pause(&self) -> Result<(), WorkloadError> {
        let spec = ExecSpec {
            argv: vec!["sleep".to_owned(), format!("{:.1}", LOOK_EVERY.as_secs_f64())],
            env: Vec::new(),
            directory: Some("/".to_owned()),
            user: None,
            timeout_ns: u64::try_from(LOOK_AT_MOST.as_nanos()).unwrap_or(u64::MAX),
            output_limit_bytes: 0,
        };
        let answer = self.site.here.call(Request::Exec(spec), LOOK_AT_MOST + self.site.patience);
        match answer.map_err(|source| WorkloadError::Agent { side: "host", source })? {
            Reply::Executed(_) => Ok(()),
            _ => Err(WorkSite::unexpected("host", "run a command")),
        }
    }

    /// Refuses what cannot fit before a byte is written.
    fn fits(&self, folder: &Path, totals: &Totals) -> Result<(), WebError> {
        let need = totals.disk_bytes + self.payload.bytes + 16 * MIB;
        let seen = statvfs(folder).map_err(|error| file("look at", folder)(error.into()))?;
        let (free, inodes) = (seen.f_bavail.saturating_mul(seen.f_frsize), seen.f_favail);
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
            return Err(WebError::new(tried(), why, remedy));
        }
        // File systems without a fixed number of inodes tell 0 altogether.
        if seen.f_files > 0 && inodes < totals.files {
            let why =
                format!("{} files are more than the {inodes} that {} has room for", totals.files, folder.display());
            return Err(WebError::new(tried(), why, remedy));
        }
        Ok(())
    }

    fn make(&self, folder: &Path, place: &Place) -> Result<(), WorkloadError> {
        let planning = Planning::new(self.model);
        let totals = planning.totals();
        self.fits(folder, &totals)?;
        let (files, size) = (totals.files, shown(totals.bytes));
        let note = self.site.note;
        note(&format!(
            "making the file set of `{}`: {files} files, {size}; it is kept for later runs",
            self.tables.name
        ));
        let (began, partial) = (Instant::now(), place.partial());
        let made = self.fill(&partial, &planning, &totals);
        if made.is_err() {
            // What is left of it is swept away by the next who makes one, if this fails too.
            let _ = remove(&partial);
        }
        made?;
        fs::rename(&partial, place.whole()).map_err(file("put in its place", &partial))?;
        File::open(folder).and_then(|opened| opened.sync_all()).map_err(file("write out", folder))?;
        note(&format!("file set made: {files} files, {size} in {:.1} s", began.elapsed().as_secs_f64()));
        Ok(())
    }

    /// Makes all that is in the copy, in a directory that is not yet in its place.
    fn fill(&self, partial: &Path, planning: &Planning<'_>, totals: &Totals) -> Result<(), WorkloadError> {
        let tree = partial.join(TREE);
        DirBuilder::new().recursive(true).mode(0o755).create(&tree).map_err(file("make", &tree))?;
        note_payload(partial, &self.payload_name())?;
        link_all(&self.payload.place, &tree)?;
        let path = tree.join(PAGES);
        fs::write(&path, pages(self.tables)).map_err(file("write", &path))?;
        let (stop, done) = (AtomicBool::new(false), AtomicU64::new(0));
        std::thread::scope(|scope| {
            let work = scope.spawn(|| planning.make(&tree, &stop, &done));
            let mut told = Instant::now();
            let mut given_up = Ok(());
            while !work.is_finished() && given_up.is_ok() {
                given_up = self.pause();
                if told.elapsed() >= TELL_EVERY {
                    told = Instant::now();
                    let percent = 100.0 * done.load(Ordering::Relaxed) as f64 / totals.bytes.max(1) as f64;
                    (self.site.note)(&format!("making the file set: {percent:.0} % of {}", shown(totals.bytes)));
                }
            }
            if given_up.is_err() {
                stop.store(true, Ordering::Relaxed);
            }
            let made = work.join().unwrap_or_else(|_| {
                Err(WebError::new("make the file set", "a thread panicked", "report this: it is a defect of tare"))
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

/// Shows in `to` what is in `from`, by hard links where that is the same file system, else by copies.
fn link_all(from: &Path, to: &Path) -> Result<(), WebError> {
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
    #![allow(clippy::unwrap_used)]
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
    fn a_guests_disk_has_an_inode_for_every_file() {
        assert_eq!(room(1 << 30, 10), (1 << 30) + (1 << 28) + 64 * MIB);
        assert_eq!(room(1 << 30, 1_000_000), 1_125_000 * INODE_EVERY);
    }
}
