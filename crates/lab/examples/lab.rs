//! A lab from outside: `talk` makes one and passes a message between the client and a guest; `hold RUN`
//! makes one with all that a run makes, says so, and stays until it is killed; `reap RUN` takes away what that left.
//!
//! Without root it moves into a user namespace first. Try `setpriv --reuid=65534 --regid=65534 --clear-groups
//! target/debug/examples/lab talk`.

use std::error::Error;
use std::io::{Read, Write, stdout};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use tare_lab::{
    Cgroup, Lab, LabConfig, Ledger, Limits, NetNs, NoLedger, Port, RUN_VARIABLE, StateDir, enter_user_namespace,
    is_rootless, leftovers, reap,
};

type Outcome<T> = Result<T, Box<dyn Error>>;

fn main() -> Outcome<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    // Reaping needs no lab, and from a user namespace it could not look into the processes of another.
    if is_rootless() && arguments.first().is_some_and(|mode| mode != "reap") {
        enter_user_namespace()?;
    }
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["talk"] => talk(),
        ["hold", run_id] => hold(run_id),
        ["reap", run_id] => clean_up(run_id),
        _ => Err("say `talk`, `hold RUN` or `reap RUN`".into()),
    }
}

fn make_lab(run_id: &str) -> Outcome<Lab> {
    Ok(Lab::create(LabConfig::new(run_id))?)
}

fn talk() -> Outcome<()> {
    let run_id = format!("example-{}", std::process::id());
    let state = StateDir::create(&run_id, Path::new("/nowhere"))?;
    let start = Instant::now();
    let lab = make_lab(&run_id)?;
    writeln!(stdout(), "lab made in {:?}, rootless: {}", start.elapsed(), is_rootless())?;
    for (name, value) in lab.facts() {
        writeln!(stdout(), "{name}: {value}")?;
    }
    let mut times = Vec::new();
    for i in 0..21 {
        let start = Instant::now();
        let port = lab.attach(&format!("guest-{i}"))?;
        times.push(start.elapsed());
        let start = Instant::now();
        let answer = exchange(&lab, &port)?;
        writeln!(stdout(), "{} answered `{answer}` in {:?}, {} drops", port.address, start.elapsed(), port.drops()?)?;
        port.detach()?;
    }
    times.sort();
    writeln!(stdout(), "attaching a guest: median {:?}, least {:?}, most {:?}", times[10], times[0], times[20])?;
    state.remove()?;
    Ok(())
}

/// The client asks, the guest answers in capitals.
fn exchange(lab: &Lab, port: &Port) -> Outcome<String> {
    let listener = port.netns.run(|| TcpListener::bind(SocketAddr::new(port.address, 0)))??;
    let to = listener.local_addr()?;
    let server = std::thread::spawn(move || -> std::io::Result<()> {
        let (mut connection, _) = listener.accept()?;
        let mut text = [0; 5];
        connection.read_exact(&mut text)?;
        connection.write_all(&text.to_ascii_uppercase())
    });
    let mut connection = lab.client().run(|| TcpStream::connect_timeout(&to, Duration::from_secs(5)))??;
    connection.write_all(b"hello")?;
    let mut text = String::new();
    connection.read_to_string(&mut text)?;
    server.join().map_err(|_| "the server panicked")??;
    Ok(text)
}

fn hold(run_id: &str) -> Outcome<()> {
    let _state = StateDir::create(run_id, Path::new("/nowhere"))?;
    let plan = Cgroup::plan(run_id, "target")?;
    NoLedger.planned(&plan.resource())?;
    let group =
        Cgroup::create(plan, &Limits { cpu_quota_cpus: Some(1), memory_bytes: Some(64 << 20), ..Limits::default() })?;
    let lab = make_lab(run_id)?;
    let (target, idle) = (lab.attach("target")?, lab.attach("idle")?);
    let mut guest = sleeper(&target.netns, run_id)?;
    group.add(guest.id())?;
    let inodes = [lab.client(), lab.sut(), &target.netns, &idle.netns].map(|netns| netns.inode());
    write!(stdout(), "ready {}", guest.id())?;
    for inode in inodes {
        write!(stdout(), " {}", inode?)?;
    }
    writeln!(stdout())?;
    stdout().flush()?;
    guest.wait()?;
    Ok(())
}

fn clean_up(run_id: &str) -> Outcome<()> {
    for left in leftovers(run_id) {
        writeln!(stdout(), "found {left}")?;
    }
    let report = reap(run_id, &[], &mut |_, _| Ok(()));
    for killed in &report.killed {
        writeln!(stdout(), "killed {} ({})", killed.pid, killed.name)?;
    }
    for removed in &report.removed {
        writeln!(stdout(), "removed {removed}")?;
    }
    for (left, why) in &report.left {
        writeln!(stdout(), "left {left}: {why}")?;
    }
    if report.is_clean() { Ok(()) } else { Err("something is left".into()) }
}

fn sleeper(netns: &NetNs, run_id: &str) -> Outcome<Child> {
    Ok(netns.run(|| Command::new("sleep").arg("600").env(RUN_VARIABLE, run_id).spawn())??)
}
