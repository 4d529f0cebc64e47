//! A real database server on the data that a guest is given, as nobody, on every platform whose guests see the host's
//! programs.

use std::os::unix::fs::{DirBuilderExt, PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tare_lab::{Lab, LabConfig, Ledger, NoLedger, StateDir};
use tare_model::ByteSize;
use tare_model::guest::{GuestData, GuestSize, GuestSpec, Seccomp};
use tare_platform::{Guest, HostView, Site};
use tare_wire::{ExecSpec, Reply, Request};

use crate::common::{agent, platform, skipped, turn};

const NOBODY: u32 = 65_534;

/// The newest installation of the server's programs on this host.
fn programs() -> Option<PathBuf> {
    let installed = std::fs::read_dir("/usr/lib/postgresql").ok()?.flatten().map(|entry| entry.path().join("bin"));
    installed.filter(|programs| programs.join("initdb").exists() && programs.join("pgbench").exists()).max()
}

/// A gold copy with an empty cluster in it.
fn gold(place: &Path, programs: &Path) -> PathBuf {
    std::fs::set_permissions(place, std::fs::Permissions::from_mode(0o711)).unwrap();
    let gold = place.join("gold");
    std::fs::DirBuilder::new().mode(0o711).create(&gold).unwrap();
    let data = gold.join("data");
    std::fs::DirBuilder::new().mode(0o700).create(&data).unwrap();
    chown(&data, Some(NOBODY), Some(NOBODY)).unwrap();
    let made = Command::new(programs.join("initdb"))
        .args(["--username=store", "--auth=trust", "--locale=C", "--encoding=UTF8", "-D"])
        .arg(&data)
        .current_dir("/")
        .uid(NOBODY)
        .gid(NOBODY)
        .output()
        .unwrap();
    assert!(made.status.success(), "{made:?}");
    gold
}

/// Runs a script as nobody in a guest; what it printed if it ended well.
fn as_nobody(guest: &dyn Guest, script: &str) -> Result<String, String> {
    let spec = ExecSpec {
        user: Some((NOBODY, NOBODY)),
        argv: ["sh", "-c", script].map(str::to_owned).to_vec(),
        env: Vec::new(),
        directory: None,
        timeout_ns: 60_000_000_000,
        output_limit_bytes: 16 << 10,
    };
    match guest.link().call(Request::Exec(spec), Duration::from_secs(90)) {
        Ok(Reply::Executed(ran)) if ran.code == Some(0) => Ok(String::from_utf8_lossy(&ran.stdout).into_owned()),
        Ok(Reply::Executed(ran)) => {
            let (out, err) = (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
            Err(format!("{:?} {out} {err}", ran.code))
        }
        other => Err(format!("{other:?}: {}", guest.diagnostics())),
    }
}

/// Starts the server as a study does, fills tables, changes them from several sides, and ends it in order.
fn serves(guest: &dyn Guest, programs: &Path) -> Result<String, String> {
    let place = guest.data().ok_or("it was given no data")?;
    let (path, programs) = (&place.path, programs.display());
    as_nobody(
        guest,
        &format!(
            "exec 2>&1; export PGUSER=store PGHOST=127.0.0.1 PGDATABASE=postgres; cd {path} || exit; \
             {programs}/pg_ctl -D data -w -t 30 -l data/log -o '-c listen_addresses=127.0.0.1 -c unix_socket_directories= \
             -c shared_buffers=64MB' start || {{ cat data/log; exit 1; }}; \
             {programs}/pgbench -i -q -s 1 && {programs}/pgbench -n -M prepared -c 4 -j 2 -T 1 && \
             {programs}/psql -At -c 'show dynamic_shared_memory_type' -c 'set max_parallel_workers_per_gather=2' \
             -c 'set min_parallel_table_scan_size=0' -c 'set parallel_setup_cost=0' -c 'set parallel_tuple_cost=0' \
             -c 'explain (analyze, costs off, timing off) select sum(abalance) from pgbench_accounts' && \
             {programs}/pg_ctl -D data -w stop || {{ cat data/log; exit 1; }}"
        ),
    )
}

#[test]
fn a_store_runs_on_its_data_on_every_platform_of_the_hosts() {
    let _turn = turn();
    let Some(agent) = agent() else { return };
    let Some(programs) = programs().filter(|_| !tare_lab::is_rootless()) else {
        return skipped("needs root and PostgreSQL in /usr/lib/postgresql");
    };
    let place = tempfile::tempdir_in("/var/tmp").unwrap();
    let gold = gold(place.path(), &programs);
    let run_id = format!("test-{}-stores", std::process::id());
    let lab = Lab::create(LabConfig::new(run_id.clone())).unwrap();
    let state = StateDir::create(&run_id, Path::new("/nonexistent")).unwrap();
    let ledger: Arc<dyn Ledger> = Arc::new(NoLedger);
    let site = Site {
        run_id: &run_id,
        agent: &agent,
        lab: &lab,
        mtu: 1500,
        state: state.path(),
        ledger: &ledger,
        lifetime: Duration::from_secs(120),
        timeout: Duration::from_secs(20),
    };
    let arms: [(&str, &str, Value); 8] = [
        ("native", "native", json!({})),
        ("container", "container", json!({"data": {"directory": place.path()}})),
        ("runc", "oci", json!({"runtime": "runc"})),
        ("crun", "oci", json!({"runtime": "crun"})),
        ("runsc", "oci", json!({"runtime": "runsc"})),
        ("runsc-own", "oci", json!({"runtime": "runsc", "gvisor": {"data": "exclusive"}})),
        ("nspawn", "nspawn", json!({})),
        ("lxc", "lxc", json!({})),
    ];
    let try_out = |(label, name, options): (&str, &str, Value)| {
        let platform = platform(name, &options);
        if let Err(refusal) = platform.check(&HostView::here(&agent)) {
            return skipped(&format!("{label}: {refusal}"));
        }
        let size = GuestSize { cpus: 2, memory: ByteSize(512 << 20) };
        let data = Some(GuestData { gold: gold.clone(), size: ByteSize(256 << 20), shared: false });
        let spec = GuestSpec {
            name: label.to_owned(),
            size,
            cpu_set: Vec::new(),
            data,
            merge: false,
            seccomp: Seccomp::Default,
        };
        let mut guest = platform.start(&site, &spec).unwrap();
        let served = serves(&*guest, &programs).unwrap_or_else(|why| panic!("{label}: {why}"));
        guest.destroy().unwrap();
        assert!(served.contains("number of failed transactions: 0 "), "{label}: {served}");
        assert!(served.contains("Workers Launched: "), "{label}: {served}");
    };
    // All at once, each with a server on the same port: they are guests apart.
    std::thread::scope(|scope| {
        let tried: Vec<_> = arms.into_iter().map(|arm| scope.spawn(|| try_out(arm))).collect();
        tried.into_iter().for_each(|tried| tried.join().unwrap());
    });
    drop(lab);
    let left = tare_lab::reap(&run_id, &[], &mut |_, _| Ok(())).left;
    assert!(left.is_empty(), "{left:?}");
    assert_eq!(tare_lab::leftovers(&run_id), Vec::<String>::new());
    assert!(!place.path().join(format!("tare-{run_id}")).exists());
}
