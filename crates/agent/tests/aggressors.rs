//! Aggressors, as a controller runs them in an agent.

use std::net::{IpAddr, Ipv4Addr};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tare_model::drive::{BusyDone, BusyStretch, BusyWork};
use tare_wire::{ExecSpec, Link, Reply, Request};

const TIMEOUT: Duration = Duration::from_secs(30);
const MS: u64 = 1_000_000;

fn start() -> (Child, Link) {
    let mut child =
        Command::new(env!("CARGO_BIN_EXE_tare-agent")).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let (reader, writer) = (child.stdout.take().unwrap(), child.stdin.take().unwrap());
    (child, Link::open(Box::new(reader), Box::new(writer), TIMEOUT, TIMEOUT).unwrap())
}

fn busy(link: &Link, work: BusyWork) -> u64 {
    match link.call(Request::Busy { threads: 1, work }, TIMEOUT).unwrap() {
        Reply::BusyStarted { busy, .. } => busy,
        other => panic!("{other:?}"),
    }
}

fn run(link: &Link, busy: u64, for_ms: u64) -> BusyDone {
    let stretch = BusyStretch { for_ns: for_ms * MS, ..BusyStretch::default() };
    match link.call(Request::RunBusy { busy, stretch }, TIMEOUT).unwrap() {
        Reply::BusyRan(done) => done,
        other => panic!("{other:?}"),
    }
}

fn achieved(done: &BusyDone) -> u64 {
    done.loops.iter().map(|one| one.iterations).sum()
}

/// Processes, ended ones too, whose parent this is.
fn children(parent: u32) -> usize {
    let parent = parent.to_string();
    let stats = std::fs::read_dir("/proc").unwrap().flatten();
    let stats = stats.filter_map(|entry| std::fs::read_to_string(entry.path().join("stat")).ok());
    stats.filter(|stat| stat.rsplit_once(") ").and_then(|(_, rest)| rest.split(' ').nth(1)) == Some(&parent)).count()
}

/// The agent's own collector of orphans leaves them alone, and they it.
#[test]
fn processes_come_and_go_beside_commands() {
    let (mut child, link) = start();
    let sleep = ExecSpec::new(&["sleep", "100"], TIMEOUT, 100);
    let Reply::Started { command, .. } = link.call(Request::Start(sleep), TIMEOUT).unwrap() else { panic!() };
    let fork = busy(&link, BusyWork::Fork);
    for _ in 0..2 {
        let done = run(&link, fork, 200);
        assert!(achieved(&done) > 10 && done.refused == 0, "{done:?}");
        assert_eq!(children(child.id()), 1, "the command alone is left");
    }
    let orphans = ExecSpec::new(&["sh", "-c", "true & exit 3"], TIMEOUT, 100);
    let Reply::Executed(result) = link.call(Request::Exec(orphans), TIMEOUT).unwrap() else { panic!() };
    assert_eq!(result.code, Some(3));
    link.call(Request::End { command }, TIMEOUT).unwrap();
    link.call(Request::Bye, TIMEOUT).unwrap();
    child.wait().unwrap();
}

#[test]
fn a_receiver_says_where_it_listens_and_hears_what_is_sent() {
    let ((mut child, link), (mut other, sender)) = (start(), start());
    let receive = BusyWork::NetReceive { listen: IpAddr::V4(Ipv4Addr::LOCALHOST) };
    let started = link.call(Request::Busy { threads: 1, work: receive }, TIMEOUT).unwrap();
    let Reply::BusyStarted { busy: receiver, address: Some(to) } = started else { panic!("{started:?}") };
    let send = busy(&sender, BusyWork::NetSend { to });
    let (sent, received) = std::thread::scope(|scope| {
        let sending = scope.spawn(|| run(&sender, send, 200));
        let received = run(&link, receiver, 300);
        (sending.join().unwrap(), received)
    });
    assert!(achieved(&received) > 0 && achieved(&received) <= achieved(&sent), "{sent:?}, {received:?}");
    for (child, link) in [(&mut child, link), (&mut other, sender)] {
        link.call(Request::Bye, TIMEOUT).unwrap();
        child.wait().unwrap();
    }
}

#[test]
fn a_stretch_ends_without_its_controller_and_a_closed_channel_ends_it_at_once() {
    let (mut child, link) = start();
    let work = BusyWork::MemoryGrowth { memory_bytes: 64 << 20 };
    let growth = busy(&link, work);
    let hurried = Duration::from_millis(50);
    let stretch = |for_ms| BusyStretch { for_ns: for_ms * MS, ..BusyStretch::default() };
    // Nobody waits for the answer.
    assert!(link.call(Request::RunBusy { busy: growth, stretch: stretch(300) }, hurried).is_err());
    std::thread::sleep(Duration::from_millis(1000));
    let iterations = || match link.call(Request::BusyIterations { busy: growth }, TIMEOUT).unwrap() {
        Reply::BusyIterations { iterations } => iterations,
        other => panic!("{other:?}"),
    };
    let stood = iterations();
    std::thread::sleep(Duration::from_millis(100));
    assert!(stood > 0 && iterations() == stood, "it goes on");
    assert!(link.call(Request::RunBusy { busy: growth, stretch: stretch(100_000) }, hurried).is_err());
    drop(link);
    let began = Instant::now();
    child.wait().unwrap();
    assert!(began.elapsed() < TIMEOUT / 2, "the agent outlived its channel");
}
