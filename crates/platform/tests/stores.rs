//! A real database server on the data that a guest is given, as nobody, on every platform whose guests see the host's
//! programs.

use serde_json::{Value, json};
use tare_model::ByteSize;
use tare_model::guest::{GuestData, GuestLog, GuestSize, GuestSpec};
use tare_platform::HostView;

use crate::common::in_memory::InMemory;
use crate::common::{Ground, agent, as_nobody, gold, platform, postgres, serves, skipped, turn};

/// Fills tables and changes them from several sides.
const WORK: &str = "pgbench -i -q -s 1 && pgbench -n -M prepared -c 4 -j 2 -T 1 && \
     psql -At -c 'show dynamic_shared_memory_type' -c 'set max_parallel_workers_per_gather=2' \
     -c 'set min_parallel_table_scan_size=0' -c 'set parallel_setup_cost=0' -c 'set parallel_tuple_cost=0' \
     -c 'explain (analyze, costs off, timing off) select sum(abalance) from pgbench_accounts'";

#[test]
fn a_store_runs_on_its_data_on_every_platform_of_the_hosts() {
    let _turn = turn();
    let Some(agent) = agent() else { return };
    let Some(programs) = postgres().filter(|_| !tare_lab::is_rootless()) else {
        return skipped("needs root and PostgreSQL in /usr/lib/postgresql");
    };
    let place = tempfile::tempdir_in("/var/tmp").unwrap();
    let gold = gold(place.path(), Some(&programs));
    let Some(ground) = Ground::new("stores", agent) else { return };
    let site = ground.site();
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
        if let Err(refusal) = platform.check(&HostView::here(&ground.agent)) {
            return skipped(&format!("{label}: {refusal}"));
        }
        let size = GuestSize { cpus: 2, memory: ByteSize(512 << 20) };
        let data = Some(GuestData { gold: gold.clone(), size: ByteSize(256 << 20), shared: false, log: None });
        let spec = GuestSpec { data, ..GuestSpec::new(label, size) };
        let mut guest = platform.start(&site, &spec).unwrap();
        let served = serves(&*guest, &programs, WORK);
        guest.destroy().unwrap();
        assert!(served.contains("number of failed transactions: 0 "), "{label}: {served}");
        assert!(served.contains("Workers Launched: "), "{label}: {served}");
    };
    // All at once, each with a server on the same port: they are guests apart.
    std::thread::scope(|scope| {
        let tried: Vec<_> = arms.into_iter().map(|arm| scope.spawn(|| try_out(arm))).collect();
        tried.into_iter().for_each(|tried| tried.join().unwrap());
    });
    let Ground { run_id, lab, state, .. } = ground;
    drop(lab);
    let left = tare_lab::reap(&run_id, &[], &mut |_, _| Ok(())).left;
    assert!(left.is_empty(), "{left:?}");
    assert_eq!(tare_lab::leftovers(&run_id), Vec::<String>::new());
    assert!(!place.path().join(format!("tare-{run_id}")).exists());
    drop(state);
}

#[test]
fn a_store_has_its_log_in_a_directory_of_its_own_on_every_platform_of_the_hosts() {
    let _turn = turn();
    let Some(agent) = agent() else { return };
    let Some(programs) = postgres().filter(|_| !tare_lab::is_rootless()) else {
        return skipped("needs root and PostgreSQL in /usr/lib/postgresql");
    };
    let place = tempfile::tempdir_in("/var/tmp").unwrap();
    let gold = gold(place.path(), Some(&programs));
    let log = place.path().join("log-gold");
    std::fs::create_dir(&log).unwrap();
    let copied = std::process::Command::new("cp").arg("-a").arg(gold.join("data/pg_wal")).arg(&log).status().unwrap();
    assert!(copied.success());
    let Some(memory) = InMemory::at(place.path().join("memory")) else {
        return skipped("no file system can be mounted here");
    };
    let Some(ground) = Ground::new("logs-of-stores", agent) else { return };
    let directories = json!({"directory": place.path(), "log-directory": memory.0, "in-memory": true});
    let with = |mut options: Value| {
        options["data"] = directories.clone();
        options
    };
    let arms = [
        ("native", "native", json!({})),
        ("container", "container", json!({})),
        ("runc", "oci", json!({"runtime": "runc"})),
        ("runsc", "oci", json!({"runtime": "runsc"})),
        ("nspawn", "nspawn", json!({})),
        ("lxc", "lxc", json!({})),
        ("podman", "podman", json!({"runtime": "runc"})),
    ];
    for (label, name, options) in arms {
        let platform = platform(name, &with(options));
        if let Err(refusal) = platform.check(&HostView::here(&ground.agent)) {
            skipped(&format!("{label}: {refusal}"));
            continue;
        }
        let given = Some(GuestLog { gold: log.clone(), size: ByteSize(64 << 20) });
        let data = Some(GuestData { gold: gold.clone(), size: ByteSize(256 << 20), shared: false, log: given });
        let size = GuestSize { cpus: 1, memory: ByteSize(512 << 20) };
        let mut guest = platform.start(&ground.site(), &GuestSpec { data, ..GuestSpec::new(label, size) }).unwrap();
        let at = guest.data().unwrap().clone();
        let of_log = at.log.unwrap();
        let on_host = of_log.on_host.unwrap();
        assert!(on_host.starts_with(&memory.0) && of_log.storage.contains("on tmpfs of the host"), "{label}");
        let row = guest.parity().into_iter().find(|row| row.resource == "storage of the log").unwrap();
        assert!(row.equal, "{label}: {row:?}");
        as_nobody(&*guest, &format!("cd {} && rm -rf data/pg_wal && ln -s {}/pg_wal data", at.path, of_log.path));
        let work = "psql -q -c 'create table t as select generate_series(1, 5000) id' && \
                    psql -At -c 'select pg_walfile_name(pg_current_wal_lsn())'";
        let served = serves(&*guest, &programs, work);
        let segment = served.lines().find(|line| line.len() == 24 && line.starts_with("0000")).unwrap();
        let written = std::fs::metadata(on_host.join("pg_wal").join(segment)).unwrap();
        assert!(written.len() > 0, "{label}: {served}");
        guest.destroy().unwrap();
        assert!(!on_host.exists(), "{label}");
    }
    let Ground { run_id, lab, state, .. } = ground;
    drop(lab);
    let left = tare_lab::reap(&run_id, &[], &mut |_, _| Ok(())).left;
    assert!(left.is_empty(), "{left:?}");
    assert_eq!(std::fs::read_dir(&memory.0).unwrap().count(), 0, "something is left of the logs");
    drop((state, memory));
}
