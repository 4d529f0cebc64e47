//! A lab across machines: guests on a wire, and load from hosts beside it, each with an sshd and a kernel's network of its own.

use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use crate::common::{
    self, CONTAINER, expect_code, has_bundle, journal, left_by_runs_into, outcomes, postgres_for_guests, query, run,
    run_ids, small_study, stderr, stdout, tare, until, write_study,
};
use crate::remote::sshd::{PLAIN, Sshd, apart};
use serde_json::json;
use tare_model::trial::Outcome;
use tare_record::RunFolder;
use tare_testkit::skipped;

/// The card of this host that is on the wire, and its addresses for the lab.
const CARD: &str = "card0";
const RANGE: &str = "203.0.113.100-203.0.113.120/24";

fn ip(words: &str) {
    let ran = Command::new("ip").args(words.split(' ')).output().unwrap();
    assert!(ran.status.success(), "ip {words}: {}", stderr(&ran));
}

/// A switch that this host's card is plugged into.
fn switch() {
    ip("link add sw type bridge forward_delay 0");
    ip("link set sw up");
    ip("link add card0 type veth peer name port0");
    ip("link set port0 master sw up");
    ip("link set card0 up");
}

/// A host beside this one: reached by ssh over a network of its own, and on the wire.
struct Beside {
    number: u8,
    sshd: Child,
}

impl Beside {
    fn new(ours: &Sshd, number: u8) -> Self {
        Self::forced(ours, number, "")
    }

    /// One whose sshd has a further line of settings.
    fn forced(ours: &Sshd, number: u8, line: &str) -> Self {
        let folder = ours.folder().display().to_string();
        let go = ours.folder().join(format!("go-{number}"));
        let log = ours.folder().join(format!("beside-{number}.log"));
        // A host that was there before under this number left both.
        for old in [&go, &log] {
            let _ = std::fs::remove_file(old);
        }
        let config = std::fs::read_to_string(ours.folder().join(format!("{PLAIN}.conf"))).unwrap();
        let config = config.replace("127.0.0.1", &format!("10.99.{number}.2"));
        std::fs::write(ours.folder().join(format!("beside-{number}")), config + line).unwrap();
        let script = "ip link set lo up; until [ -e \"$1/go-$2\" ]; do sleep 0.02; done; \
                      exec /usr/sbin/sshd -D -e -f \"$1/beside-$2\" 2>\"$1/beside-$2.log\"";
        let mut command = Command::new("unshare");
        command.args(["--net", "sh", "-c", script, "beside", &folder, &number.to_string()]).stdin(Stdio::null());
        let sshd = command.spawn().unwrap();
        let namespace = |pid: &str| std::fs::read_link(format!("/proc/{pid}/ns/net")).unwrap();
        let (pid, own) = (sshd.id().to_string(), namespace("self"));
        until("a namespace of its own", || namespace(&pid) != own);
        let inside = |words: &str| {
            let all: Vec<&str> = ["-t", &pid, "-n", "ip"].into_iter().chain(words.split(' ')).collect();
            assert!(Command::new("nsenter").args(all).status().unwrap().success(), "{words}");
        };
        ip(&format!("link add m{number} type veth peer name admin netns {pid}"));
        ip(&format!("addr add 10.99.{number}.1/24 dev m{number}"));
        ip(&format!("link set m{number} up"));
        ip(&format!("link add w{number} type veth peer name wire netns {pid}"));
        ip(&format!("link set w{number} master sw up"));
        for (link, address) in [("admin", format!("10.99.{number}.2")), ("wire", format!("203.0.113.{number}"))] {
            inside(&format!("addr add {address}/24 dev {link}"));
            inside(&format!("link set {link} up"));
        }
        std::fs::write(go, "").unwrap();
        until("its sshd", || std::fs::read_to_string(&log).unwrap_or_default().contains("listening"));
        Self { number, sshd }
    }

    /// Each connection to it waits until as many were made to another host: only those who ask both at one time get on.
    fn keeping_step_with(ours: &Sshd, number: u8, other: u8) -> Self {
        let at = ours.folder().display();
        let script = format!(
            "#!/bin/sh\nmade() {{ ls {at} | grep -c \"^made-$1-\"; }}\nn=$(($(made {number}) + 1)); : >{at}/made-{number}-$n; i=0\n\
             until [ $(made {other}) -ge $n ]; do i=$((i + 1)); [ $i -lt 400 ] || exit 66; sleep 0.05; done\n\
             exec sh -c \"$SSH_ORIGINAL_COMMAND\"\n"
        );
        let path = ours.folder().join(format!("step-{number}"));
        std::fs::write(&path, script).unwrap();
        Self::forced(ours, number, &format!("ForceCommand sh {}\n", path.display()))
    }

    /// As a study names it.
    fn table(&self, ours: &Sshd) -> String {
        let mut options = ours.options(PLAIN);
        options["host"] = json!(format!("10.99.{}.2", self.number));
        options["address"] = json!(format!("203.0.113.{}", self.number));
        let fields = options.as_object().unwrap().iter().map(|(key, value)| format!("{key} = {value}"));
        let fields: Vec<String> = fields.collect();
        format!("[hosts.client-{}]\nssh = {{ {} }}\n", self.number, fields.join(", "))
    }

    /// Frames that it has sent on the wire.
    fn sent(&self) -> u64 {
        let shown =
            Command::new("ip").args(["-s", "-j", "link", "show", &format!("w{}", self.number)]).output().unwrap();
        let links: serde_json::Value = serde_json::from_slice(&shown.stdout).unwrap();
        links[0]["stats64"]["rx"]["packets"].as_u64().unwrap()
    }

    /// What runs on it ends, and then it is gone. Its connections end before: without that word it would be waited for as long as ssh waits for an answer.
    fn lose(self) {
        let pid = self.sshd.id();
        for child in std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap().split_whitespace() {
            let _ = Command::new("kill").args(["-9", child]).status();
            until("its end", || !Path::new(&format!("/proc/{child}")).exists());
        }
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        let _ = self.sshd.kill();
        let _ = self.sshd.wait();
        for link in ["m", "w"] {
            let _ = Command::new("ip").args(["link", "del", &format!("{link}{}", self.number)]).output();
        }
    }
}

/// Runs a command again until it says something. Another run on this machine may be trying to take away what this test left, 10 s a host: it
/// then looks alive, and is left alone.
#[track_caller]
fn until_it_says(words: &str, command: impl Fn() -> Output) -> Output {
    let began = Instant::now();
    loop {
        let output = command();
        let said = stdout(&output) + &stderr(&output);
        if said.contains(words) {
            return output;
        }
        assert!(began.elapsed() < Duration::from_secs(60), "`{words}` is not said: {said}");
    }
}

/// Forgets what runs left on hosts of this test alone, however it ends: no later run could ever take it away.
struct Forgets<'a>(&'a Path);

impl Drop for Forgets<'_> {
    fn drop(&mut self) {
        for id in run_ids(self.0) {
            // Another run on this machine may be trying to take it away now, which makes it look alive: 10 s a host, as long as ssh tries to connect.
            let state = Path::new("/run/tare").join(&id);
            let began = Instant::now();
            while state.exists() && began.elapsed() < Duration::from_secs(30) {
                let _ = tare().args(["reap", "--forget", &id]).output();
                std::thread::sleep(Duration::from_millis(100));
            }
        }
    }
}

/// A study with its lab on the wire, and load from these hosts.
fn on_the_wire(study: &str, ours: &Sshd, hosts: &[&Beside]) -> String {
    let tables: String = hosts.iter().map(|host| host.table(ours)).collect();
    let ids: Vec<String> = hosts.iter().map(|host| format!("\"client-{}\"", host.number)).collect();
    let wire = format!("wire = {{ interface = \"{CARD}\", addresses = \"{RANGE}\" }}");
    let roles = format!("[roles]\ndrivers = [{}]\n", ids.join(", "));
    format!("{study}\n[lab]\n{wire}\n{tables}{roles}")
}

#[test]
fn four_drivers_on_two_hosts_drive_two_databases_on_a_wire() {
    apart(skipped, |ours| {
        let Some(postgres) = postgres_for_guests() else { return };
        switch();
        let hosts = [Beside::new(ours, 1), Beside::new(ours, 2)];
        let case = format!(
            "[cases.orders]\nworkload = \"store\"\nguests = 2\ndrivers = 2\nload = {{ closed = {{ clients = 2 }} }}\n\
             parameters = {{ db-size = \"10MB\", postgres = \"{postgres}\" }}\n"
        );
        let phases = [("warm-up", "1s"), ("steady-state", "2s"), ("ramp-down", "100ms")];
        let study = common::study(1, CONTAINER, "512MiB", &phases, &case);
        let folder = tempfile::tempdir().unwrap();
        let study = write_study(folder.path(), &on_the_wire(&study, ours, &[&hosts[0], &hosts[1]]));
        let (study, out) = (study.to_str().unwrap().to_owned(), folder.path().join("run"));
        let planned = run(&["plan", &study]);
        expect_code(&planned, 0);
        let said = stdout(&planned).split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(
            said.contains("guests are on the wire of `card0`") && said.contains("from `client-1`, `client-2`"),
            "{said}"
        );
        let output = run(&["run", &study, "--out", out.to_str().unwrap()]);
        expect_code(&output, 0);
        assert_eq!(outcomes(&out), vec!["completed"; 2], "{}", stderr(&output));
        assert_eq!(left_by_runs_into(folder.path()), Vec::<String>::new());
        let facts = query::<String>(&out, "SELECT DISTINCT name FROM facts");
        for expected in ["clock of host client-1", "clock of host client-2", "drivers began within"] {
            assert!(facts.iter().any(|fact| fact == expected), "{expected}: {facts:?}");
        }
        let folder = RunFolder::open(&out).unwrap();
        let machines: Vec<&str> = folder.environment().machines.iter().map(|machine| machine.name.as_str()).collect();
        assert_eq!(machines, ["host client-1", "host client-2"]);
        let plan = std::fs::read_to_string(out.join("plan.json")).unwrap();
        assert!(plan.contains(CARD) && !plan.contains("203.0.113"), "{plan}");
        // Each guest has one driver on each host; what they did adds up.
        let parts =
            query::<f64>(&out, "SELECT value FROM parts WHERE metric = 'orders_per_minute' AND driver IS NOT NULL");
        assert!(parts.len() == 8 && parts.iter().all(|orders| *orders > 0.0), "{parts:?}");
    });
}

/// The same study with guests attached to the card itself.
fn to_the_card(study: &str) -> String {
    study.replace(&format!("\"{RANGE}\" }}"), &format!("\"{RANGE}\", attach = \"macvlan\" }}"))
}

/// What the kernel says of links, without counts.
fn links(words: &str) -> String {
    let ran = Command::new("ip").args(["-d", "-o", "link", "show"]).args(words.split_whitespace()).output().unwrap();
    stdout(&ran)
}

/// The `eth0` of each namespace beside this one that a run has processes in, as the kernel describes it.
fn guests_links(out: &Path) -> Vec<String> {
    let namespace = |pid: &str| std::fs::read_link(format!("/proc/{pid}/ns/net")).ok();
    let mut seen = std::collections::BTreeMap::new();
    for pid in run_ids(out).iter().flat_map(|run| common::processes_of(run)).map(|pid| pid.to_string()) {
        let Some(own) = namespace(&pid).filter(|own| Some(own) != namespace("self").as_ref()) else { continue };
        let inside =
            Command::new("nsenter").args(["-t", &pid, "-n", "ip", "-d", "-o", "link", "show", "dev", "eth0"]).output();
        let said = stdout(&inside.unwrap());
        if !said.is_empty() {
            seen.insert(own, said);
        }
    }
    seen.into_values().collect()
}

#[test]
fn guests_on_the_card_itself_are_driven_from_beside_and_the_card_is_left_as_it_was() {
    apart(skipped, |ours| {
        switch();
        ip("addr add 203.0.113.9/24 dev card0");
        let before = links("dev card0");
        let host = Beside::new(ours, 1);
        let study = to_the_card(&on_the_wire(&small_study(1, CONTAINER), ours, &[&host]));
        let study = study.replace("steady-state = \"200ms\"", "steady-state = \"2s\"");
        let folder = tempfile::tempdir().unwrap();
        let path = write_study(folder.path(), &study);
        let out = folder.path().join("run");
        let planned = run(&["plan", path.to_str().unwrap()]);
        expect_code(&planned, 0);
        assert!(stdout(&planned).contains("each by a macvlan of its own"), "{}", stdout(&planned));
        let mut running = common::begin(&path, &out);
        let mut seen = std::collections::BTreeSet::new();
        until("its end", || {
            seen.extend(guests_links(&out));
            running.try_wait().unwrap().is_some()
        });
        assert_eq!(outcomes(&out), vec!["completed"; 2]);
        let number = before.split(':').next().unwrap();
        assert!(seen.len() >= 2, "{seen:?}");
        for link in &seen {
            assert!(link.contains("macvlan mode bridge") && link.contains(&format!("eth0@if{number}:")), "{link}");
        }
        assert_eq!(links("dev card0"), before);
        assert_eq!(left_by_runs_into(folder.path()), Vec::<String>::new());
        let run_folder = RunFolder::open(&out).unwrap();
        let granted =
            run_folder.environment().sections.iter().find(|section| section.title == "Lab, as granted").unwrap();
        assert!(
            granted.facts.iter().any(|(name, value)| name == "card driver" && value.starts_with("veth")),
            "{granted:?}"
        );
        let plan = std::fs::read_to_string(out.join("plan.json")).unwrap();
        assert!(plan.contains("macvlan over the card") && !plan.contains("veth pair"), "{plan}");

        // Killed in the middle of a load.
        let long = study.replace("steady-state = \"2s\"", "steady-state = \"30s\"");
        let path = write_study(folder.path(), &long);
        let killed = folder.path().join("killed");
        let mut running = common::begin(&path, &killed);
        until("load", || journal(&killed).contains("\"drive\""));
        assert!(!guests_links(&killed).is_empty());
        common::kill(&mut running);
        run(&["reap"]);
        until("the card alone", || links("dev card0") == before);
        assert_eq!(left_by_runs_into(folder.path()), Vec::<String>::new());
    });
}

#[test]
fn a_machine_on_the_card_itself_is_driven_from_beside() {
    apart(skipped, |ours| {
        if Command::new("qemu-system-x86_64").arg("--version").output().is_err() {
            skipped("there is no qemu-system-x86_64 here");
            return;
        }
        switch();
        let before = links("dev card0");
        let host = Beside::new(ours, 1);
        let arm = "[arms.machine]\nplatform = \"qemu\"\noptions = { accel = \"tcg\", boot-within = \"5m\" }\n";
        let phases = [("warm-up", "200ms"), ("steady-state", "2s")];
        let case = "[cases.idle]\nworkload = \"rr\"\nparameters = { request = \"128B\", response = \"128B\" }\n";
        let study = common::study(1, arm, "256MiB", &phases, case);
        let folder = tempfile::tempdir().unwrap();
        let path = write_study(folder.path(), &to_the_card(&on_the_wire(&study, ours, &[&host])));
        let out = folder.path().join("run");
        let output = run(&["run", "--emulated", path.to_str().unwrap(), "--out", out.to_str().unwrap()]);
        assert_eq!(outcomes(&out), vec!["completed"; 2], "{}", stderr(&output));
        let times = query::<f64>(&out, "SELECT value FROM metrics WHERE metric = 'response_time_mean_s'");
        assert!(times.len() == 2 && times.iter().all(|time| (1e-6..0.5).contains(time)), "{times:?}");
        let plan = std::fs::read_to_string(out.join("plan.json")).unwrap();
        assert!(plan.contains("virtio-net, on a macvtap over the card"), "{plan}");
        assert_eq!(links("dev card0"), before);
        assert_eq!(left_by_runs_into(folder.path()), Vec::<String>::new());
    });
}

/// Why trials failed, of those that did.
fn failures(out: &Path) -> Vec<String> {
    let trials = RunFolder::open(out).unwrap().trials().unwrap().into_iter();
    let reason = |outcome| if let Outcome::Failed { reason, .. } = outcome { Some(reason) } else { None };
    trials.filter_map(|trial| reason(trial.outcome)).collect()
}

/// A study of sites on the wire with load from the one host, whose pages ask the backend on the other.
fn served(folder: &Path, arms: &str, steady_state: &str, ours: &Sshd, [driver, services]: [&Beside; 2]) -> String {
    let case = format!(
        "[cases.site]\nworkload = \"web-support\"\nload = {{ closed = {{ clients = 6 }} }}\n\
         parameters = {{ tables = \"{}\", receive-rate = \"unlimited\", file-sessions = 4, heap = \"256MiB\" }}\n",
        crate::web::hasty_tables(folder, "support").display()
    );
    let phases = [("warm-up", "1s"), ("steady-state", steady_state), ("ramp-down", "100ms")];
    let text = on_the_wire(&common::study(1, arms, "768MiB", &phases, &case), ours, &[driver]);
    let role = format!("services = \"client-{}\"\n", services.number);
    text + &role + &services.table(ours)
}

#[test]
fn what_pages_ask_for_is_served_by_a_host_of_its_own() {
    apart(skipped, |ours| {
        if !has_bundle("web") {
            return;
        }
        switch();
        let [driver, services] = [Beside::new(ours, 1), Beside::new(ours, 2)];
        let folder = tempfile::tempdir().unwrap();
        let text = served(folder.path(), CONTAINER, "3s", ours, [&driver, &services]);
        let (study, out) = (write_study(folder.path(), &text), folder.path().join("run"));
        let planned = run(&["plan", study.to_str().unwrap()]);
        expect_code(&planned, 0);
        let said = stdout(&planned).split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(said.contains("from `client-1`:") && said.contains("is served from `client-2`"), "{said}");
        let before = services.sent();
        let output = run(&["run", study.to_str().unwrap(), "--out", out.to_str().unwrap()]);
        let sent = services.sent() - before;
        expect_code(&output, 0);
        assert_eq!(outcomes(&out), vec!["completed"; 2], "{}", stderr(&output));
        assert_eq!(left_by_runs_into(folder.path()), Vec::<String>::new());
        // Each answer took a frame of its own at least, and that host has nothing else to say on the wire.
        let answered = query::<f64>(&out, "SELECT value FROM counts WHERE name = 'backend_requests'");
        assert!(answered.len() == 2 && answered.iter().all(|requests| *requests > 10.0), "{answered:?}");
        assert!(sent as f64 >= answered.iter().sum::<f64>(), "{sent} frames for {answered:?}");
        let on = query::<String>(&out, "SELECT value FROM facts WHERE name = 'services on'");
        assert_eq!(on, ["host client-2", "host client-2"]);
        let clocks =
            query::<String>(&out, "SELECT DISTINCT name FROM facts WHERE name LIKE 'clock of host %' ORDER BY 1");
        assert_eq!(clocks, ["clock of host client-1", "clock of host client-2"]);
        let opened = RunFolder::open(&out).unwrap();
        let machines: Vec<&str> = opened.environment().machines.iter().map(|machine| machine.name.as_str()).collect();
        assert_eq!(machines, ["host client-1", "host client-2"]);
        let report = std::fs::read_to_string(out.join("report.md")).unwrap();
        assert!(report.contains("Services machine client-2\n  - **backend simulator**"), "{report}");
    });
}

#[test]
fn a_services_host_that_is_lost_ends_the_load_with_its_name() {
    apart(skipped, |ours| {
        if !has_bundle("web") {
            return;
        }
        switch();
        let [driver, services] = [Beside::new(ours, 1), Beside::new(ours, 2)];
        let folder = tempfile::tempdir().unwrap();
        let _forgets = Forgets(folder.path());
        let text = served(folder.path(), "", "60s", ours, [&driver, &services]);
        let (study, out) = (write_study(folder.path(), &text), folder.path().join("run"));
        let running = common::begin(&study, &out);
        until("load", || journal(&out).contains("\"drive\""));
        std::thread::sleep(Duration::from_secs(3));
        services.lose();
        let lost = Instant::now();
        let output = running.wait_with_output().unwrap();
        assert!(!output.status.success() && lost.elapsed() < Duration::from_secs(45), "{}", stderr(&output));
        let reasons = failures(&out);
        assert!(reasons.len() == 1 && reasons[0].contains("host `client-2`"), "{reasons:?}");
        assert!(reasons[0].contains("is gone") && !reasons[0].contains("client-1"), "{reasons:?}");
    });
}

#[test]
fn a_host_that_is_lost_fails_its_trial_with_its_name_and_leaves_nothing() {
    apart(skipped, |ours| {
        switch();
        let lost = Beside::new(ours, 1);
        let study = small_study(1, CONTAINER).replace("steady-state = \"200ms\"", "steady-state = \"30s\"");
        let folder = tempfile::tempdir().unwrap();
        let _forgets = Forgets(folder.path());
        let study = write_study(folder.path(), &on_the_wire(&study, ours, &[&lost]));
        let out = folder.path().join("run");
        let running = common::begin(&study, &out);
        until("load", || journal(&out).contains("\"drive\""));
        std::thread::sleep(Duration::from_millis(500));
        // All of the host is gone at once.
        ip("link del m1");
        lost.lose();
        let output = running.wait_with_output().unwrap();
        // The trials end with the reason. What is on the host that is lost stays on the list.
        let said = stderr(&output).split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains("its figures stand") && !said.contains("no further trial was started"), "{said}");
        let reasons = failures(&out);
        assert_eq!(reasons.len(), 2, "the run went on: {reasons:?}");
        assert!(reasons.iter().all(|reason| reason.contains("host `client-1`")), "{reasons:?}");
        // Another run does not wait for it, and once the host is back it is taken away.
        let plain = write_study(folder.path(), &small_study(1, CONTAINER));
        let next = folder.path().join("next");
        let next = until_it_says("on another machine", || {
            let _ = std::fs::remove_dir_all(&next);
            run(&["run", plain.to_str().unwrap(), "--out", next.to_str().unwrap()])
        });
        expect_code(&next, 0);
        // A host that is gone for good is struck from the list, of that run alone.
        let id = run_ids(&out).pop().unwrap();
        let [state, aside] = [format!("/run/tare/{id}"), folder.path().join("aside").display().to_string()];
        let copy =
            |from: &str, to: &str| assert!(Command::new("cp").args(["-a", from, to]).status().unwrap().success());
        copy(&state, &aside);
        let reaped = until_it_says("still there: the agent on 10.99.1.2", || run(&["reap"]));
        assert_eq!(reaped.status.code(), Some(1), "{reaped:?}");
        let forgotten =
            until_it_says("perhaps still there: the agent on 10.99.1.2", || run(&["reap", "--forget", &id]));
        expect_code(&forgotten, 0);
        let unknown = run(&["reap", "--forget", &id]);
        assert!(stderr(&unknown).contains("no dead run") && !unknown.status.success(), "{unknown:?}");
        // Had it not been forgotten, it would be taken away once the host is back.
        let _ = Command::new("install").args(["-d", "-m", "700", "/run/tare"]).status();
        copy(&aside, &state);
        let _back = Beside::new(ours, 1);
        run(&["reap"]);
        assert_eq!(left_by_runs_into(folder.path()), Vec::<String>::new());
    });
}

#[test]
fn hosts_are_asked_and_start_and_end_their_drivers_at_one_time() {
    apart(skipped, |ours| {
        switch();
        let hosts = [Beside::keeping_step_with(ours, 1, 2), Beside::keeping_step_with(ours, 2, 1)];
        let case = "[cases.idle]\nworkload = \"null\"\nguests = 2\n";
        let study = common::study(1, CONTAINER, "256MiB", &[("warm-up", "100ms"), ("steady-state", "200ms")], case);
        let folder = tempfile::tempdir().unwrap();
        let study = write_study(folder.path(), &on_the_wire(&study, ours, &[&hosts[0], &hosts[1]]));
        let out = folder.path().join("run");
        let output = run(&["run", study.to_str().unwrap(), "--out", out.to_str().unwrap()]);
        expect_code(&output, 0);
        assert_eq!(outcomes(&out), vec!["completed"; 2], "{}", stderr(&output));
        assert_eq!(left_by_runs_into(folder.path()), Vec::<String>::new());
    });
}

#[test]
fn all_hosts_that_do_not_answer_are_named_before_anything_is_started() {
    apart(skipped, |ours| {
        switch();
        let hosts = [Beside::new(ours, 1), Beside::forced(ours, 2, "ForceCommand exit 0\n"), Beside::new(ours, 3)];
        ip("link set m3 down");
        let folder = tempfile::tempdir().unwrap();
        let study = on_the_wire(&small_study(1, CONTAINER), ours, &[&hosts[0], &hosts[1], &hosts[2]]);
        let (path, out) = (write_study(folder.path(), &study), folder.path().join("run"));
        let output = run(&["run", path.to_str().unwrap(), "--out", out.to_str().unwrap()]);
        expect_code(&output, 4);
        let said = stderr(&output).split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(said.contains("host `client-2`: ") && said.contains("no POSIX shell"), "{said}");
        assert!(said.contains("host `client-3`: ") && !said.contains("host `client-1`"), "{said}");
        assert!(!out.exists(), "a run folder was made");
    });
}

#[test]
fn an_address_in_use_and_a_card_that_is_missing_are_found_before_anything_is_started() {
    apart(skipped, |ours| {
        switch();
        let host = Beside::new(ours, 105);
        let study = on_the_wire(&small_study(1, CONTAINER), ours, &[&host]);
        let folder = tempfile::tempdir().unwrap();
        let refused = |study: &str| {
            let path = write_study(folder.path(), study);
            let out = folder.path().join("run");
            let output = run(&["run", path.to_str().unwrap(), "--out", out.to_str().unwrap()]);
            expect_code(&output, 4);
            assert!(!out.exists(), "a run folder was made");
            stderr(&output).split_whitespace().collect::<Vec<_>>().join(" ")
        };
        let said = refused(&study);
        assert!(said.contains("203.0.113.105 is in use there by") && said.contains("Name a range"), "{said}");
        let said = refused(&study.replace(CARD, "card7"));
        assert!(said.contains("no such network card"), "{said}");
    });
}

#[test]
fn the_published_topologies_are_planned_from_a_file_of_hosts_beside_the_shipped_studies() {
    let folder = tempfile::tempdir().unwrap();
    let lab = folder.path().join("lab.toml");
    let lab = lab.to_str().unwrap();
    let planned = |study: &str, hosts: &str| {
        std::fs::write(lab, hosts).unwrap();
        let output = run(&["plan", study, "--what-can", "--emulated", "--scale", "0.1", "--hosts", lab]);
        let words = |text: String| text.split_whitespace().collect::<Vec<_>>().join(" ");
        (output.status.code(), words(stdout(&output)), words(stderr(&output)))
    };
    let hosts = |count: u32| {
        let host =
            |n: u32| format!("[hosts.client-{n}]\nssh = {{ host = \"client{n}\", address = \"203.0.113.{n}\" }}\n");
        let ids: Vec<String> = (1..=count).map(|n| format!("\"client-{n}\"")).collect();
        let tables: String = (1..=count).map(host).collect();
        let wire = format!("[lab.wire]\ninterface = \"{CARD}\"\naddresses = \"{RANGE}\"\n");
        format!("{tables}[roles]\ndrivers = [{}]\n{wire}", ids.join(", "))
    };
    for study in ["response-time-as-published", "throughput-as-published"] {
        let (code, said, error) = planned(study, &hosts(1));
        assert_eq!(code, Some(0), "{study}: {error}");
        assert!(
            said.contains("load comes from `client-1`") && said.contains("the card of the wire"),
            "{study}: {said}"
        );
    }
    let backend = "services = \"client-2\"\n[lab.wire]";
    let (code, said, error) = planned("web-serving", &hosts(2).replace("[lab.wire]", backend));
    assert_eq!(code, Some(0), "{error}");
    assert!(said.contains("(backend simulator) is served from `client-2`"), "{said}");
    let (code, said, error) = planned("order-entry-levels", &hosts(8));
    assert_eq!(code, Some(0), "{error}");
    assert!(said.contains("`client-8`"), "{said}");
    // What is wrong is shown in the file that it is in, with its own line.
    let (code, _, error) = planned("throughput", &hosts(1).replace("client1", "-x"));
    assert!(code == Some(2) && error.contains("lab.toml:2") && error.contains("begins with `-`"), "{error}");
    let (code, _, error) = planned("throughput", "[guest]\ncpus = 1\n");
    assert!(code == Some(2) && error.contains("lab.toml:1") && error.contains("guest"), "{error}");
    let (code, _, error) = planned("throughput", "\n");
    assert!(code == Some(2) && error.contains("names no host"), "{error}");
}

/// The lab of a study that loses its wire's name is a study like others.
#[test]
fn drivers_beside_the_host_need_a_wire() {
    let folder = tempfile::tempdir().unwrap();
    let host = "[hosts.client-1]\nssh = { host = \"192.0.2.1\" }\n[roles]\ndrivers = [\"client-1\"]\n";
    let path = write_study(folder.path(), &(small_study(1, CONTAINER) + host));
    let output = run(&["plan", path.to_str().unwrap()]);
    expect_code(&output, 2);
    let said = stderr(&output).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains("cannot reach `native`, `container`") && said.contains("[lab] wire"), "{said}");
    let wired = format!("[lab]\nwire = {{ interface = \"{CARD}\", addresses = \"{RANGE}\" }}\n");
    let path = write_study(folder.path(), &(small_study(1, CONTAINER) + &wired + host));
    expect_code(&run(&["plan", Path::new(&path).to_str().unwrap()]), 0);
}
