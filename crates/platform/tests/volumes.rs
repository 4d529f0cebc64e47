//! A real database server on the data disks of virtual machines, on every storage path, as nobody; and what is refused.

use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tare_lab::{Lab, LabConfig, Ledger, NoLedger, StateDir};
use tare_model::ByteSize;
use tare_model::guest::{GuestData, GuestSize, GuestSpec, Seccomp};
use tare_platform::{DataWanted, Guest, HostView, Platform, PlatformError, Site};
use tare_wire::{ExecSpec, Reply, Request};

use crate::common::{agent, platform, skipped, turn};

const NOBODY: u32 = 65_534;
/// Size of the disks.
const SIZE: ByteSize = ByteSize(256 << 20);

/// The newest installation of the server's programs on this host.
fn programs() -> Option<PathBuf> {
    let installed = std::fs::read_dir("/usr/lib/postgresql").ok()?.flatten().map(|entry| entry.path().join("bin"));
    installed.filter(|programs| programs.join("initdb").exists() && programs.join("pgbench").exists()).max()
}

/// A gold copy with a cluster in it, empty without programs.
fn gold(place: &Path, programs: Option<&Path>) -> PathBuf {
    std::fs::set_permissions(place, std::fs::Permissions::from_mode(0o711)).unwrap();
    let gold = place.join("gold");
    std::fs::DirBuilder::new().mode(0o755).create(&gold).unwrap();
    let data = gold.join("data");
    std::fs::DirBuilder::new().mode(0o700).create(&data).unwrap();
    let _ = chown(&data, Some(NOBODY), Some(NOBODY));
    let Some(programs) = programs else { return gold };
    let mut initdb = Command::new(programs.join("initdb"));
    initdb.args(["--username=store", "--auth=trust", "--locale=C", "--encoding=UTF8", "-D"]).arg(&data);
    let made = initdb.current_dir("/").uid(NOBODY).gid(NOBODY).output().unwrap();
    assert!(made.status.success(), "{made:?}");
    gold
}

/// A lab and a state directory of a test's own.
struct Ground {
    run_id: String,
    agent: PathBuf,
    lab: Lab,
    state: StateDir,
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
        let gold = gold(place.path(), programs);
        let run_id = format!("test-{}-{test}", std::process::id());
        let lab = Lab::create(LabConfig::new(run_id.clone())).unwrap();
        let state = StateDir::create(&run_id, Path::new("/nonexistent")).unwrap();
        Some(Self { run_id, agent, lab, state, place, gold })
    }

    fn start(&self, platform: &dyn Platform, name: &str) -> Result<Box<dyn Guest>, PlatformError> {
        let ledger: Arc<dyn Ledger> = Arc::new(NoLedger);
        let site = Site {
            run_id: &self.run_id,
            agent: &self.agent,
            lab: &self.lab,
            mtu: 1500,
            state: self.state.path(),
            ledger: &ledger,
            lifetime: Duration::from_secs(300),
            timeout: Duration::from_secs(120),
        };
        let size = GuestSize { cpus: 1, memory: ByteSize(512 << 20) };
        let data = Some(GuestData { gold: self.gold.clone(), size: SIZE, shared: false });
        platform.start(
            &site,
            &GuestSpec {
                name: name.to_owned(),
                size,
                cpu_set: Vec::new(),
                data,
                merge: false,
                seccomp: Seccomp::Default,
            },
        )
    }

    /// Why a guest does not start.
    fn refusal(&self, options: &Value) -> String {
        match self.start(&*platform("qemu", options), "refused") {
            Err(error) => error.to_string(),
            Ok(guest) => panic!("it started: {:?}", guest.data()),
        }
    }

    fn end(self) {
        let Self { run_id, lab, state, .. } = self;
        drop(lab);
        let left = tare_lab::left_by_guests(&run_id).unwrap();
        assert!(left.is_empty(), "{left:?}");
        let swept = tare_lab::reap(&run_id, &[], &mut |_, _| Ok(()));
        assert!(swept.left.is_empty() && swept.killed.is_empty(), "{swept:?}");
        drop(state);
    }
}

/// A block device that is a file of ours; gone when it is dropped.
struct Loop(String);

impl Loop {
    fn of(file: &Path, bytes: u64) -> Option<Self> {
        let made = std::fs::File::create(file).and_then(|file| file.set_len(bytes));
        made.unwrap();
        let said = Command::new("losetup").args(["-f", "--show"]).arg(file).output().ok()?;
        let device = String::from_utf8_lossy(&said.stdout).trim().to_owned();
        (said.status.success() && device.starts_with("/dev/")).then_some(Self(device))
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        let _ = Command::new("losetup").args(["-d", &self.0]).status();
    }
}

/// Runs a script as nobody in a guest; what it printed.
fn as_nobody(guest: &dyn Guest, script: &str) -> String {
    let spec = ExecSpec {
        user: Some((NOBODY, NOBODY)),
        argv: ["sh", "-c", script].map(str::to_owned).to_vec(),
        env: Vec::new(),
        directory: None,
        timeout_ns: 120_000_000_000,
        output_limit_bytes: 16 << 10,
    };
    match guest.link().call(Request::Exec(spec), Duration::from_secs(150)) {
        Ok(Reply::Executed(ran)) => {
            let said = String::from_utf8_lossy(&[ran.stdout, ran.stderr].concat()).into_owned();
            assert_eq!(ran.code, Some(0), "{said}");
            said
        }
        other => panic!("{other:?}: {}", guest.diagnostics()),
    }
}

/// Starts the server, fills a table, changes it from several sides, and ends the server in order. It is little work: the
/// machine may be emulated.
fn serves(guest: &dyn Guest, programs: &Path) -> String {
    let (path, programs) = (&guest.data().expect("it was given data").path, programs.display());
    as_nobody(
        guest,
        &format!(
            "exec 2>&1; export PGUSER=store PGHOST=127.0.0.1 PGDATABASE=postgres; cd {path} || exit; \
             {programs}/pg_ctl -D data -w -t 90 -l data/log -o '-c listen_addresses=127.0.0.1 -c unix_socket_directories= \
             -c shared_buffers=64MB' start || {{ cat data/log; exit 1; }}; \
             {programs}/psql -q -c 'create table t as select id, 0 as v from generate_series(1, 5000) id' \
             -c 'alter table t add primary key (id)' && \
             printf '\\\\set id random(1, 5000)\nupdate t set v = v + 1 where id = :id;\n' >data/script && \
             {programs}/pgbench -n -M prepared -f data/script -c 4 -j 2 -t 25 && \
             test $({programs}/psql -At -c 'select sum(v) from t') = 100 && \
             grep ' {path} ' /proc/mounts && {programs}/pg_ctl -D data -w stop || {{ cat data/log; exit 1; }}"
        ),
    )
}

#[test]
fn a_store_runs_on_every_storage_path_of_a_machine() {
    let _turn = turn();
    let Some(programs) = programs() else { return skipped("there is no PostgreSQL in /usr/lib/postgresql") };
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
        if let Err(refusal) = platform.check(&HostView::here(&ground.agent)) {
            return skipped(&format!("{name}: {refusal}"));
        }
        let began = Instant::now();
        let mut guest = ground.start(&*platform, name).unwrap_or_else(|error| panic!("{name}: {error}"));
        let served = serves(&*guest, &programs);
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
    if let Err(refusal) = platform.check(&HostView::here(&ground.agent)) {
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
    if let Err(refusal) = platform.check(&HostView::here(&ground.agent)) {
        return skipped(&refusal.to_string());
    }
    for wanted in [2, 3] {
        let refusal = platform.data_refusal(DataWanted { guests: wanted, size: SIZE });
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
