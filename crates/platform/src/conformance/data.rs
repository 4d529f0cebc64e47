//! Data that a guest is given: the same as the gold copy, its own, and gone with it.

use std::collections::BTreeMap;
use std::fs::{self, File, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};
use std::time::Duration;

use tare_lab::{Resource, make_disk_directory};
use tare_model::ByteSize;
use tare_model::guest::{DataPlace, GuestData};
use tare_wire::{ExecResult, copy_out};

use super::usage::noise;
use super::{Broken, Ground, hold, skip};
use crate::Guest;
use crate::data::SHOWN;
use crate::data_directory::closed_to_nobody;

/// Whom servers in guests run as.
const NOBODY: u32 = 65_534;
/// Length of the largest file.
const TABLE_BYTES: usize = 5 << 20;
/// Length of what a guest writes.
const WRITTEN_BYTES: u64 = 1 << 20;
/// Size of a volume that holds the gold copy and what is written.
const VOLUME: ByteSize = ByteSize(64 << 20);

/// What can be seen of a file: kind and mode, owner and group, modification time, content or target.
type Seen = (u32, u32, u32, i64, Vec<u8>);

impl Ground<'_> {
    /// The gold copy that its guests are given, made when it is first asked for. `None` where the platform claims to hand
    /// nothing over, and without root, where files cannot be given to others.
    pub(super) fn gold(&self) -> Result<Option<GuestData>, Broken> {
        if !self.expect.data || self.host.rootless {
            return Ok(None);
        }
        // On a disk, as a run's are: /run may be mounted so that no program runs from it.
        let gold = make_disk_directory(&self.run_id).map_err(|error| error.to_string())?.join("gold");
        if !gold.exists() {
            make_gold(&gold).map_err(|error| format!("no gold copy could be made: {error}"))?;
        }
        Ok(Some(GuestData { gold, size: VOLUME, shared: false, log: None }))
    }

    /// Guests find their data as they are in the gold copy, each its own, and anew every time.
    pub(super) fn gives_data(&self) -> Result<(), Broken> {
        let Some(data) = self.gold()? else {
            if self.expect.data {
                skip("data of guests: without root, files cannot be given to other users");
            }
            return Ok(());
        };
        let before = seen(&data.gold)?;
        let (mut first, mut second) =
            (self.start_given("first", Some(&data))?, self.start_given("second", Some(&data))?);
        let place = first.data().cloned().ok_or("a guest was given data and says nothing of where they are")?;
        hold(place.restore_s > 0.0 && !place.restored_by.is_empty() && !place.storage.is_empty(), || {
            format!("it does not tell how its data were restored: {place:?}")
        })?;
        self.shows_gold(&*first, &data.gold)?;
        self.writes_as_nobody(&*first, &place)?;
        let kept = self.copies_on_host();
        hold(!place.storage.starts_with("directory") || kept.len() == 2, || {
            format!("two guests have directories, and {kept:?} are there")
        })?;
        let copy = kept.iter().find(|copy| copy.ends_with("first"));
        // What no server on the host itself must get to is closed to others there.
        let open = copy.is_some_and(|copy| copy != Path::new(&place.path) && closed_to_nobody(copy).is_none());
        hold(!open, || format!("others on the host may pass through to {copy:?}"))?;
        self.is_on_host(copy)?;
        self.shows_gold(&*second, &data.gold)?;
        first.destroy().map_err(|error| error.to_string())?;
        let mut again = self.start_given("first", Some(&data))?;
        self.shows_gold(&*again, &data.gold)?;
        again.destroy().and_then(|()| second.destroy()).map_err(|error| error.to_string())?;
        hold(kept.iter().all(|copy| !copy.exists()), || format!("of {kept:?} something is left"))?;
        hold(seen(&data.gold)? == before, || "the gold copy was changed".into())?;
        self.is_clean("after guests with data")
    }

    /// Guests that are given data which nobody writes all see the same, and nothing is copied for them. Where they are shown
    /// the gold copy itself at a place of their own, nobody in them can write to it.
    pub(super) fn gives_shared_data(&self) -> Result<(), Broken> {
        let Some(data) = self.gold()? else { return Ok(()) };
        let before = seen(&data.gold)?;
        let data = GuestData { shared: true, ..data };
        let (mut first, mut second) =
            (self.start_given("first", Some(&data))?, self.start_given("second", Some(&data))?);
        for guest in [&*first, &*second] {
            self.shows_gold(guest, &data.gold)?;
            let place = guest.data().ok_or("a guest was given data and says nothing of where they are")?;
            let ran = self.exec(guest, &["sh", "-c", &format!("{}/tool", place.path)])?;
            hold(ran.stdout == b"works\n", || format!("a program in its data does not run: {ran:?}"))?;
            let is_shown = place.restored_by == SHOWN;
            hold(is_shown == (place.restore_s == 0.0), || format!("it does not tell how it came by them: {place:?}"))?;
            if is_shown && Path::new(&place.path) != data.gold {
                let ran =
                    self.exec(guest, &["sh", "-c", &format!("cd {} && echo x > data/new || rm mine", place.path)])?;
                hold(ran.code.is_some_and(|code| code != 0), || format!("it can write to what it shares: {ran:?}"))?;
            }
        }
        let kept = self.copies_on_host();
        hold(kept.is_empty(), || format!("for data that are shared, {kept:?} were made"))?;
        first.destroy().and_then(|()| second.destroy()).map_err(|error| error.to_string())?;
        hold(seen(&data.gold)? == before, || "the gold copy was changed".into())?;
        self.is_clean("after guests with shared data")
    }

    /// Everything in the gold copy is in the guest, and nothing else but what a file system of its own has by itself.
    fn shows_gold(&self, guest: &dyn Guest, gold: &Path) -> Result<(), Broken> {
        let name = &guest.spec().name;
        let place = guest.data().ok_or_else(|| format!("{name} says nothing of where its data are"))?;
        let script = format!(
            "export LC_ALL=C; cd {} && stat -c '%n %F %a %u %g %Y' data data/* mine other && stat -c '%n %s' data/table \
             data/holes mine other && readlink link && ls data data/base",
            place.path
        );
        let expected = printed(&script.replacen(&place.path, &gold.to_string_lossy(), 1))?;
        let ran = self.exec(guest, &["sh", "-c", &script])?;
        hold(ran.code == Some(0) && ran.stdout == expected, || {
            let (text, wanted) = (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&expected));
            format!("{name} sees {text:?} {:?} of its data, not {wanted:?}", String::from_utf8_lossy(&ran.stderr))
        })?;
        let local = self.state.join("data-copied");
        for file in ["data/table", "data/holes", "other"] {
            let (remote, timeout) = (format!("{}/{file}", place.path), self.expect.timeout);
            let limit = 4 * TABLE_BYTES as u64;
            copy_out(guest.link(), &remote, &local, limit, timeout.max(Duration::from_secs(30)))
                .map_err(|error| error.to_string())?;
            let same = fs::read(&local).and_then(|copy| Ok(copy == fs::read(gold.join(file))?));
            hold(same.map_err(|error| error.to_string())?, || format!("{name} sees other bytes in {file}"))?;
            fs::remove_file(&local).map_err(|error| error.to_string())?;
        }
        Ok(())
    }

    /// A server that runs as nobody can write and flush what is its own, and nothing that is not.
    fn writes_as_nobody(&self, guest: &dyn Guest, place: &DataPlace) -> Result<(), Broken> {
        let run = |script: &str| -> Result<ExecResult, Broken> {
            let mut spec = self.command(&["sh", "-c", script]);
            (spec.user, spec.directory) = (Some((NOBODY, NOBODY)), Some(place.path.clone()));
            self.executed(guest, spec)
        };
        let blocks = WRITTEN_BYTES >> 16;
        let ran = run(&format!(
            "dd if=/dev/zero of=data/written bs=65536 count={blocks} conv=fsync && \
             dd if=/dev/zero of=data/table bs=65536 count=2 conv=fsync,notrunc && rm data/holes && stat -c '%u %g' data/written"
        ))?;
        hold(ran.code == Some(0) && ran.stdout == b"65534 65534\n", || {
            format!("as nobody it cannot write its data: {ran:?}")
        })?;
        let ran = run("cat mine > /dev/null || echo x > other")?;
        hold(ran.code.is_some_and(|code| code != 0), || format!("as nobody it has what is not its own: {ran:?}"))
    }

    /// What a guest with a directory of the host's wrote is in that, not in an overlay, nor in memory.
    fn is_on_host(&self, copy: Option<&PathBuf>) -> Result<(), Broken> {
        let Some(copy) = copy else { return Ok(()) };
        let length = |file: &str| fs::metadata(copy.join(file)).map(|found| found.len()).ok();
        let found = (length("data/written"), length("data/holes"));
        hold(found == (Some(WRITTEN_BYTES), None), || format!("what it wrote is not in {}: {found:?}", copy.display()))
    }

    /// Directories of guests' data on this host, from what is written down.
    fn copies_on_host(&self) -> Vec<PathBuf> {
        let mut copies: Vec<PathBuf> = self
            .notebook
            .open()
            .into_iter()
            .filter_map(|resource| match resource {
                Resource::Directory { path } => Some(path),
                _ => None,
            })
            .flat_map(|path| ["first", "second", "closed/first", "closed/second"].map(|guest| path.join(guest)))
            .filter(|copy| copy.join("data").is_dir())
            .collect();
        copies.sort();
        copies.dedup();
        copies
    }
}

/// A gold copy as a store's is: what is nobody's, what is another's, a link, holes, and nothing for all to see.
fn make_gold(gold: &Path) -> std::io::Result<()> {
    let draft = gold.with_extension("draft");
    fs::create_dir_all(draft.join("data/base"))?;
    fs::write(draft.join("data/table"), noise(TABLE_BYTES))?;
    let holes = File::create(draft.join("data/holes"))?;
    std::os::unix::fs::FileExt::write_all_at(&holes, b"the end", 3 << 20)?;
    fs::write(draft.join("data/base/1"), "")?;
    fs::write(draft.join("mine"), "for root\n")?;
    fs::write(draft.join("other"), "for another\n")?;
    fs::write(draft.join("tool"), "#!/bin/sh\necho works\n")?;
    symlink("data/table", draft.join("link"))?;
    let set = |name: &str, owner: u32, mode: u32| {
        let path = draft.join(name);
        chown(&path, Some(owner), Some(owner)).and_then(|()| fs::set_permissions(path, Permissions::from_mode(mode)))
    };
    for name in ["data/table", "data/holes", "data/base/1"] {
        set(name, NOBODY, 0o600)?;
    }
    set("data/base", NOBODY, 0o700)?;
    set("data", NOBODY, 0o700)?;
    set("mine", 0, 0o600)?;
    set("other", 1234, 0o644)?;
    set("tool", 0, 0o755)?;
    fs::set_permissions(&draft, Permissions::from_mode(0o755))?;
    fs::rename(draft, gold)
}

/// What a script prints here.
fn printed(script: &str) -> Result<Vec<u8>, Broken> {
    let ran = std::process::Command::new("sh").args(["-c", script]).output().map_err(|error| error.to_string())?;
    hold(ran.status.success(), || format!("`{script}` failed here: {}", String::from_utf8_lossy(&ran.stderr)))?;
    Ok(ran.stdout)
}

/// All that is below a directory.
fn seen(directory: &Path) -> Result<BTreeMap<PathBuf, Seen>, Broken> {
    let mut all = BTreeMap::new();
    let mut next = vec![directory.to_owned()];
    while let Some(path) = next.pop() {
        let look = || -> std::io::Result<(Seen, Vec<PathBuf>)> {
            let found = path.symlink_metadata()?;
            let (mut content, mut below) = (Vec::new(), Vec::new());
            if found.is_dir() {
                below = fs::read_dir(&path)?.map(|entry| Ok(entry?.path())).collect::<std::io::Result<_>>()?;
            } else if found.is_symlink() {
                content = fs::read_link(&path)?.into_os_string().into_encoded_bytes();
            } else {
                content = fs::read(&path)?;
            }
            Ok(((found.mode(), found.uid(), found.gid(), found.mtime(), content), below))
        };
        let (found, below) = look().map_err(|error| format!("{}: {error}", path.display()))?;
        next.extend(below);
        all.insert(path, found);
    }
    Ok(all)
}
