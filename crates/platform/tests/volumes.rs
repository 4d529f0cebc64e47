//! A real database server on the data disks of virtual machines, on every storage path, as nobody; and what is refused.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use serde_json::{Value, json};
use tare_model::ByteSize;
use tare_model::guest::{GuestData, GuestLog, GuestSize, GuestSpec};
use tare_platform::{DataWanted, Guest, HostView, Platform, PlatformError};

use crate::common::loop_device::Loop;
use crate::common::{self, agent, as_nobody, platform, postgres, serves, skipped, turn};

/// Size of the disks.
const SIZE: ByteSize = ByteSize(256 << 20);

/// A place to start machines in, and the data that they are given.
struct Ground {
    lab: common::Ground,
    place: tempfile::TempDir,
    gold: PathBuf,
}

impl Ground {
    fn new(test: &str, programs: Option<&Path>) -> Option<Self> {
        let agent = agent()?;
        if tare_lab::is_rootless() {
            skipped("data disks need root");
            return None;
        }
        let place = tempfile::tempdir_in("/var/tmp").unwrap();
        let gold = common::gold(place.path(), programs);
        Some(Self { lab: common::Ground::new(test, agent)?, place, gold })
    }

    fn start(&self, platform: &dyn Platform, name: &str) -> Result<Box<dyn Guest>, PlatformError> {
        self.start_with(platform, name, None)
    }

    fn start_with(
        &self,
        platform: &dyn Platform,
        name: &str,
        log: Option<GuestLog>,
    ) -> Result<Box<dyn Guest>, PlatformError> {
        let size = GuestSize { cpus: 1, memory: ByteSize(512 << 20) };
        let data = Some(GuestData { gold: self.gold.clone(), size: SIZE, shared: false, log });
        platform.start(&self.lab.site(), &GuestSpec { data, ..GuestSpec::new(name, size) })
    }

    /// Why a guest does not start.
    fn refusal(&self, options: &Value) -> String {
        match self.start(&*platform("qemu", options), "refused") {
            Err(error) => error.to_string(),
            Ok(guest) => panic!("it started: {:?}", guest.data()),
        }
    }

    fn end(self) {
        let common::Ground { run_id, lab, state, .. } = self.lab;
        drop(lab);
        let left = tare_lab::left_by_guests(&run_id).unwrap();
        assert!(left.is_empty(), "{left:?}");
        let swept = tare_lab::reap(&run_id, &[], &mut |_, _| Ok(()));
        assert!(swept.left.is_empty() && swept.killed.is_empty(), "{swept:?}");
        drop(state);
    }
}

/// Fills a table and changes it from several sides. It is little work: the machine may be emulated.
const WORK: &str = "psql -q -c 'create table t as select id, 0 as v from generate_series(1, 5000) id' \
     -c 'alter table t add primary key (id)' && \
     printf '\\\\set id random(1, 5000)\nupdate t set v = v + 1 where id = :id;\n' >data/script && \
     pgbench -n -M prepared -f data/script -c 4 -j 2 -t 25 && \
     test $(psql -At -c 'select sum(v) from t') = 100 && grep \" $PWD \" /proc/mounts";

#[test]
fn a_store_runs_on_every_storage_path_of_a_machine() {
    let _turn = turn();
    let Some(programs) = postgres() else { return skipped("there is no PostgreSQL in /usr/lib/postgresql") };
    let Some(ground) = Ground::new("volumes", Some(&programs)) else { return };
    let device = Loop::of(&ground.place.path().join("device"), 2 * SIZE.0);
    if device.is_none() {
        skipped("a block device: there are no loop devices here");
    }
    let on_device = device.as_ref().map(|device| json!({"device": device.0, "overwrite": true, "cache": "none"}));
    let paths = [
        ("raw", Some(json!({}))),
        ("qcow2", Some(json!({"format": "qcow2", "cache": "none", "aio": "native"}))),
        ("device", on_device),
        ("iscsi-qemu", Some(json!({"iscsi": "hypervisor"}))),
        ("iscsi-guest", Some(json!({"iscsi": "guest"}))),
    ];
    let try_out = |(name, disk): (&str, Value)| {
        let platform = platform("qemu", &json!({"data-disk": disk}));
        if let Err(refusal) = platform.check(&HostView::here(&ground.lab.agent)) {
            return skipped(&format!("{name}: {refusal}"));
        }
        let began = Instant::now();
        let mut guest = ground.start(&*platform, name).unwrap_or_else(|error| panic!("{name}: {error}"));
        let served = serves(&*guest, &programs, WORK);
        let mounted = served.lines().find(|line| line.contains(" ext4 ")).unwrap_or_default();
        let disk_of_scsi = mounted.starts_with("/dev/sd");
        assert_eq!(disk_of_scsi, name == "iscsi-guest", "{served}");
        assert!(served.contains("number of failed transactions: 0 "), "{name}: {served}");
        let rate = served.lines().find(|line| line.starts_with("tps")).unwrap_or_default();
        let line = format!("{name}: {:?}: {rate}: {:?} in all", guest.data().unwrap(), began.elapsed());
        let _ = writeln!(std::io::stderr(), "{line}");
        guest.destroy().unwrap();
    };
    // Side by side, as guests of one trial are: two at a time keep a small host busy.
    let paths: Vec<_> = paths.into_iter().filter_map(|(name, disk)| Some((name, disk?))).collect();
    let next = AtomicUsize::new(0);
    let work = || {
        while let Some(path) = paths.get(next.fetch_add(1, Ordering::Relaxed)) {
            try_out(path.clone());
        }
    };
    std::thread::scope(|scope| {
        let workers = [scope.spawn(work), scope.spawn(work)];
        workers.into_iter().for_each(|worker| worker.join().unwrap());
    });
    drop(device);
    ground.end();
}

#[test]
fn nothing_is_overwritten_that_was_not_given_for_it() {
    let _turn = turn();
    let Some(ground) = Ground::new("overwrite", None) else { return };
    let platform = platform("qemu", &json!({}));
    if let Err(refusal) = platform.check(&HostView::here(&ground.lab.agent)) {
        return skipped(&refusal.to_string());
    }
    let said = ground.refusal(&json!({"data-disk": {"size": "64MiB"}}));
    assert!(said.contains("64MiB") && said.contains("256MiB"), "{said}");
    let said = ground.refusal(&json!({"data-disk": {"filesystem": "ext2"}}));
    assert!(said.contains("ext4"), "{said}");
    let file = ground.place.path().join("device");
    let Some(device) = Loop::of(&file, 512 << 20) else {
        ground.end();
        return skipped("there are no loop devices here");
    };
    let said = ground.refusal(&json!({"data-disk": {"device": device.0}}));
    assert!(said.contains("overwrite = true"), "{said}");
    // With a file system of somebody's that is in use.
    let (at, disk) = (ground.place.path().join("mounted"), json!({"device": device.0, "overwrite": true}));
    std::fs::create_dir(&at).unwrap();
    assert!(Command::new("mke2fs").args(["-q", "-F", &device.0]).status().unwrap().success());
    let mounted = Command::new("mount").arg(&device.0).arg(&at).status().unwrap().success();
    if mounted {
        let said = ground.refusal(&json!({"data-disk": disk}));
        assert!(Command::new("umount").arg(&at).status().unwrap().success());
        assert!(said.contains("in use"), "{said}");
    } else {
        skipped("a device that is mounted: mount refuses");
    }
    drop(device);
    let small = Loop::of(&file, 32 << 20).unwrap();
    let said = ground.refusal(&json!({"data-disk": {"device": small.0, "overwrite": true}}));
    assert!(said.contains("it has 32 MiB and the data need 392 MiB"), "{said}");
    ground.end();
}

/// Names of guests are those of a trial; the user's devices are there once and serve every trial.
#[test]
fn every_guest_of_every_trial_has_the_device_with_its_number() {
    let _turn = turn();
    let Some(ground) = Ground::new("numbered", None) else { return };
    let device = |number: u32| {
        let device = Loop::of(&ground.place.path().join(format!("file-{number}")), 2 * SIZE.0)?;
        let link = ground.place.path().join(format!("disk-{number}"));
        std::os::unix::fs::symlink(&device.0, link).unwrap();
        Some(device)
    };
    let (Some(first), Some(second)) = (device(1), device(2)) else {
        ground.end();
        return skipped("there are no loop devices here");
    };
    let each = ground.place.path().join("disk-{guest}").display().to_string();
    let platform = platform("qemu", &json!({"data-disk": {"device": each, "overwrite": true, "cache": "none"}}));
    if let Err(refusal) = platform.check(&HostView::here(&ground.lab.agent)) {
        return skipped(&refusal.to_string());
    }
    for wanted in [2, 3] {
        let refusal = platform.data_refusal(DataWanted { guests: wanted, size: SIZE, log: ByteSize(0) });
        assert_eq!(refusal.is_some(), wanted == 3, "{refusal:?}");
    }
    for trial in ["t0", "t17"] {
        let start =
            |n: u32| ground.start(&*platform, &format!("{trial}x{n}")).unwrap_or_else(|error| panic!("{error}"));
        let mut guests = std::thread::scope(|scope| {
            let guests = [0, 1].map(|n| scope.spawn(move || start(n)));
            guests.map(|guest| guest.join().unwrap())
        });
        for (number, guest) in (1..).zip(&guests) {
            let storage = &guest.data().unwrap().storage;
            assert!(storage.contains(&format!("disk-{number} of the host, cache=none")), "{storage}");
            assert!(storage.contains("the guest sees ext4 (rw,noatime) on /dev/vd"), "{storage}");
            let row = guest.parity().into_iter().find(|row| row.resource == "data disk").unwrap();
            assert!(row.equal && row.asked.contains("past the host's cache"), "{row:?}");
        }
        guests.iter_mut().for_each(|guest| guest.destroy().unwrap());
    }
    drop((first, second));
    ground.end();
}

/// A file system on a device of its own, as the mount point of a disk is.
struct Pool {
    at: PathBuf,
    _device: Loop,
}

impl Pool {
    /// `None` where there can be none.
    fn at(place: &Path, name: &str) -> Option<Self> {
        let (at, device) = (place.join(name), Loop::of(&place.join(format!("{name}-device")), 4 * SIZE.0)?);
        std::fs::create_dir(&at).unwrap();
        let made = Command::new("mke2fs").args(["-q", "-F", &device.0]).status().is_ok_and(|made| made.success());
        let mounted = || Command::new("mount").arg(&device.0).arg(&at).status().unwrap().success();
        (made && mounted()).then_some(Self { at, _device: device })
    }

    fn is_empty(&self) {
        let left: Vec<_> = std::fs::read_dir(&self.at).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(left, ["lost+found"]);
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.at).status();
    }
}

/// Writes to the log, and shows where it is and what the guest has mounted.
const LOGGED: &str = "psql -q -c 'create table t as select generate_series(1, 5000) id' && \
     test -s /log/pg_wal/$(psql -At -c 'select pg_walfile_name(pg_current_wal_lsn())') && \
     grep -e ' /data ' -e ' /log ' /proc/mounts";

#[test]
fn a_machine_has_the_log_of_its_database_on_a_disk_of_its_own() {
    let _turn = turn();
    let Some(programs) = postgres() else { return skipped("there is no PostgreSQL in /usr/lib/postgresql") };
    let Some(ground) = Ground::new("logs", Some(&programs)) else { return };
    let log = ground.place.path().join("log-gold");
    std::fs::create_dir(&log).unwrap();
    let copied = Command::new("cp").arg("-a").arg(ground.gold.join("data/pg_wal")).arg(&log).status().unwrap();
    assert!(copied.success());
    let device = Loop::of(&ground.place.path().join("device"), 2 * SIZE.0);
    let queue = |depth: u32| json!({"iscsi": "guest", "queue-depth": depth});
    let hypervisor = || json!({"iscsi": "hypervisor"});
    let mut paths = vec![
        ("files", json!({}), json!({"format": "qcow2", "cache": "none"})),
        ("iscsi-qemu", hypervisor(), hypervisor()),
        ("iscsi-guest", queue(64), queue(64)),
    ];
    match &device {
        Some(device) => paths.push(("device", json!({}), json!({"device": device.0, "overwrite": true}))),
        None => skipped("a block device: there are no loop devices here"),
    }
    let pool = Pool::at(ground.place.path(), "pool-1");
    match &pool {
        Some(_) => {
            let each = ground.place.path().join("pool-{guest}");
            paths.push(("directories", json!({"directory": ground.place.path()}), json!({"directory": each})));
        }
        None => skipped("directories: no other file system can be mounted here"),
    }
    for (name, data, log_disk) in paths {
        let platform = platform("qemu", &json!({"data-disk": data, "log-disk": log_disk}));
        if let Err(refusal) = platform.check(&HostView::here(&ground.lab.agent)) {
            skipped(&format!("{name}: {refusal}"));
            continue;
        }
        let given = Some(GuestLog { gold: log.clone(), size: SIZE });
        let mut guest = ground.start_with(&*platform, name, given).unwrap_or_else(|error| panic!("{name}: {error}"));
        let place = guest.data().unwrap().clone();
        let of_log = place.log.clone().unwrap();
        assert_eq!((place.path.as_str(), of_log.path.as_str()), ("/data", "/log"), "{name}");
        as_nobody(&*guest, "rm -rf /data/data/pg_wal && ln -s /log/pg_wal /data/data/pg_wal");
        let served = serves(&*guest, &programs, LOGGED);
        let devices = served.lines().filter(|line| line.contains(" ext4 ")).map(|line| line.split(' ').next().unwrap());
        let devices: std::collections::BTreeSet<&str> = devices.collect();
        assert_eq!(devices.len(), 2, "{name}: {served}");
        let rows = guest.parity();
        let row = |resource: &str| rows.iter().find(|row| row.resource == resource);
        assert!(row("storage of the log").unwrap().equal, "{name}: {rows:?}");
        let by_guest = name == "iscsi-guest";
        assert_eq!(row("log disk").map(|row| row.equal), (!by_guest).then_some(true), "{name}: {rows:?}");
        for disk in ["data", "log"] {
            let depth = row(&format!("queue depth of the {disk} disk")).map(|row| row.granted.clone());
            assert_eq!(depth, by_guest.then(|| Some("64".to_owned())), "{name}: {rows:?}");
        }
        let in_pool = of_log.on_host.unwrap().starts_with(ground.place.path().join("pool-1"));
        assert_eq!(in_pool, name == "directories", "{}", of_log.storage);
        let _ = writeln!(std::io::stderr(), "{name}: {}\n    log: {}", place.storage, of_log.storage);
        guest.destroy().unwrap();
    }
    pool.iter().for_each(Pool::is_empty);
    drop((device, pool));
    ground.end();
}
