//! Commands that are left running, memory that is held beside them, and memory that is open to merging, as a controller
//! meets them.

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tare_model::hold::{GuestMemory, HoldSpec};
use tare_wire::{ExecResult, ExecSpec, Link, Reply, Request, WireError};

const TIMEOUT: Duration = Duration::from_secs(30);
const MIB: u64 = 1 << 20;

/// An agent, which ends with its link.
struct Agent {
    link: Option<Link>,
    child: Child,
}

impl Drop for Agent {
    fn drop(&mut self) {
        self.link = None;
        let _ = self.child.wait();
    }
}

impl Agent {
    fn new(arguments: &[&str]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_tare-agent"))
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (reader, writer) = (child.stdout.take().unwrap(), child.stdin.take().unwrap());
        let link = Link::open(Box::new(reader), Box::new(writer), TIMEOUT, 4 * TIMEOUT).unwrap();
        Self { link: Some(link), child }
    }

    fn ask(&self, request: Request) -> Result<Reply, WireError> {
        self.link.as_ref().unwrap().call(request, TIMEOUT)
    }

    fn start(&self, spec: ExecSpec) -> (u64, u32) {
        match self.ask(Request::Start(spec)).unwrap() {
            Reply::Started { command, pid } => (command, pid),
            other => panic!("{other:?}"),
        }
    }

    fn look(&self, command: u64) -> Look {
        Look::of(self.ask(Request::Look { command }).unwrap())
    }

    fn end(&self, command: u64) -> ExecResult {
        Look::of(self.ask(Request::End { command }).unwrap()).ended.unwrap()
    }

    fn held(&self) -> (u64, u64) {
        match self.ask(Request::Held).unwrap() {
            Reply::Holding { bytes, first_bytes } => (bytes, first_bytes),
            other => panic!("{other:?}"),
        }
    }

    fn resident_bytes(&self) -> u64 {
        let statm = std::fs::read_to_string(format!("/proc/{}/statm", self.child.id())).unwrap();
        statm.split(' ').nth(1).unwrap().parse::<u64>().unwrap() * 4096
    }
}

struct Look {
    stdout: String,
    ended: Option<ExecResult>,
    peak: Option<u64>,
}

impl Look {
    fn of(reply: Reply) -> Self {
        let Reply::Looked { stdout, ended, resident_peak_bytes, .. } = reply else { panic!("{reply:?}") };
        Self { stdout: String::from_utf8(stdout).unwrap(), ended, peak: resident_peak_bytes }
    }
}

fn script(text: &str) -> ExecSpec {
    ExecSpec { directory: Some("/".into()), ..ExecSpec::new(&["sh", "-c", text], Duration::from_secs(1_000), 1000) }
}

/// Waits for a condition of the system's.
fn eventually<T>(what: &str, look: impl Fn() -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        if let Some(seen) = look() {
            return seen;
        }
        assert!(began.elapsed() < TIMEOUT, "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn is_gone(pid: &str) -> Option<()> {
    // A zombie has no command line.
    std::fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|line| !line.is_empty()).eq(&false).then_some(())
}

#[test]
fn a_started_command_is_looked_at_while_it_runs_and_ends_in_order() {
    let agent = Agent::new(&[]);
    let text = "trap 'echo bye; exit 7' TERM; echo ready; while :; do sleep 0.01; done";
    let (command, pid) = agent.start(script(text));
    let look = eventually("it prints", || Some(agent.look(command)).filter(|look| look.stdout == "ready\n"));
    assert!(look.ended.is_none() && look.peak.is_some_and(|bytes| bytes > 100_000), "{:?}", look.peak);
    let group = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    assert!(group.contains(&format!(" {pid} ")), "the leader of a group of its own: {group}");
    let ended = agent.end(command);
    assert_eq!((ended.code, ended.signal, ended.timed_out), (Some(7), None, false));
    assert_eq!(ended.stdout, b"ready\nbye\n");
    for request in [Request::Look { command }, Request::End { command }] {
        let error = agent.ask(request).unwrap_err().to_string();
        assert!(error.contains("no started command with number"), "{error}");
    }
}

#[test]
fn one_that_does_not_listen_is_killed_and_so_is_what_is_left_of_its_group() {
    let agent = Agent::new(&[]);
    let (deaf, _) = agent.start(script("trap '' TERM; sleep 1000 & echo $!; wait"));
    let (leaves, _) = agent.start(script("(trap '' TERM; exec sleep 1000) & echo $!; wait"));
    let child_of =
        |command| eventually("it prints", || Some(agent.look(command).stdout).filter(|said| said.ends_with('\n')));
    let children = [child_of(deaf), child_of(leaves)];
    // Its own thread ends the second one at once, however long the first takes.
    assert_eq!(agent.end(leaves).signal, Some(15));
    assert_eq!(agent.end(deaf).signal, Some(9));
    children.iter().for_each(|child| eventually("the group is gone", || is_gone(child.trim())));
}

#[test]
fn how_it_ended_by_itself_or_by_its_time_is_reported() {
    let agent = Agent::new(&[]);
    let (command, _) = agent.start(ExecSpec { output_limit_bytes: 4, ..script("echo 12345678; echo x >&2; exit 3") });
    let look = eventually("it ends", || Some(agent.look(command)).filter(|look| look.ended.is_some()));
    let ended = look.ended.unwrap();
    assert_eq!((ended.code, look.stdout.as_str(), look.peak), (Some(3), "678\n", None));
    assert_eq!((ended.stdout.as_slice(), ended.stderr.as_slice()), (&b"678\n"[..], &b"x\n"[..]));
    assert_eq!(ended.dropped_bytes, 5);
    assert_eq!(agent.end(command), ended, "what has ended is not ended again");

    let (command, _) = agent.start(ExecSpec { timeout_ns: 50_000_000, ..script("sleep 1000 & echo $!; wait") });
    let look = eventually("its time is over", || Some(agent.look(command)).filter(|look| look.ended.is_some()));
    assert!(look.ended.is_some_and(|ended| ended.timed_out && ended.signal == Some(9)));
    eventually("its children are killed with it", || is_gone(look.stdout.trim()));

    let spec = ExecSpec { argv: vec!["no-such-program".into()], ..script("") };
    let error = agent.ask(Request::Start(spec)).unwrap_err().to_string();
    assert!(error.contains("no such program"), "{error}");
}

#[test]
fn started_commands_are_killed_by_a_cancel_and_die_with_the_agent() {
    for cancel in [true, false] {
        let mut agent = Agent::new(&[]);
        let (command, pid) = agent.start(script("sleep 1000 & echo $!; wait"));
        let child = eventually("it prints", || Some(agent.look(command).stdout).filter(|said| said.ends_with('\n')));
        if cancel {
            agent.ask(Request::Cancel).unwrap();
            let look = eventually("it ends", || Some(agent.look(command)).filter(|look| look.ended.is_some()));
            assert_eq!(look.ended.unwrap().signal, Some(9));
            let error = agent.ask(Request::Start(script("true"))).unwrap_err().to_string();
            assert!(error.contains("cancelled"), "{error}");
        } else {
            agent.link = None;
            agent.child.wait().unwrap();
        }
        eventually("its child is gone", || is_gone(child.trim()));
        eventually("it is gone", || is_gone(&pid.to_string()));
    }
}

#[test]
fn what_is_held_gives_way_to_commands_and_never_grows_again() {
    let agent = Agent::new(&[]);
    assert_eq!(agent.held(), (0, 0));
    let (small, _) = agent.start(script("echo up; exec sleep 1000"));
    let spec = HoldSpec { promised_bytes: 200 * MIB, room_bytes: 20 * MIB, fill: GuestMemory::FilledSame, seed: 1 };
    let reply = agent.ask(Request::Hold(spec)).unwrap();
    let Reply::Holding { bytes, first_bytes } = reply else { panic!("{reply:?}") };
    let peak = agent.look(small).peak.unwrap();
    assert!(bytes == first_bytes && (170 * MIB..=180 * MIB).contains(&bytes), "{bytes} beside {peak}");
    assert!(agent.resident_bytes() >= bytes, "all of it is written");

    // The 64 MB lie in the memory of `tail`, a child of the shell.
    let text = "head -c 64000000 /dev/zero | tail -c 64000000 | sleep 1000";
    let (large, _) = agent.start(script(text));
    let less = eventually("it gives way", || Some(agent.held().0).filter(|&held| held < 180 * MIB - 64_000_000));
    eventually("the system has it back", || (agent.resident_bytes() < less + 20 * MIB).then_some(()));
    agent.end(large);
    agent.end(small);
    let (now, first) = agent.held();
    assert!(now <= less && now > 80 * MIB && first == first_bytes, "{now} of {first}");
    assert!(agent.ask(Request::Hold(spec)).unwrap_err().to_string().contains("does that once"));

    let (all, _) = agent.start(script("head -c 190000000 /dev/zero | tail -c 190000000 | sleep 1000"));
    eventually("nothing fits beside it", || (agent.held().0 == 0).then_some(()));
    agent.end(all);
}

#[test]
fn a_cancel_ends_the_writing_of_memory() {
    let agent = Agent::new(&[]);
    let spec = HoldSpec { promised_bytes: 2048 * MIB, room_bytes: 0, fill: GuestMemory::FilledDistinct, seed: 1 };
    std::thread::scope(|scope| {
        let holding = scope.spawn(|| agent.ask(Request::Hold(spec)));
        eventually("it writes", || (holding.is_finished() || agent.resident_bytes() > 32 * MIB).then_some(()));
        agent.ask(Request::Cancel).unwrap();
        match holding.join().unwrap() {
            Err(error) if error.to_string().contains("bytes are available") => {
                println!("SKIPPED: this machine has no 2 GiB of memory to spare");
            }
            held => assert!(held.unwrap_err().to_string().contains("was cancelled")),
        }
    });
    eventually("what was written is given back", || (agent.resident_bytes() < 30 * MIB).then_some(()));
}

#[test]
fn what_a_merging_guest_starts_is_open_to_merging() {
    let ksm_stat = |merge: bool| {
        let launch = format!(
            r#"{{"cgroup_procs":[],"netns":null,"cpu_set":[],"unshare":[],"root":null,"hostname":null,"merge":{merge},"argv":[]}}"#
        );
        let agent = Agent::new(&["enter", &launch]);
        // The shell starts another program, whose memory it is.
        let reply = agent.ask(Request::Exec(script("cat /proc/self/ksm_stat; true"))).unwrap();
        let Reply::Executed(ran) = reply else { panic!("{reply:?}") };
        String::from_utf8(ran.stdout).unwrap()
    };
    let without = ksm_stat(false);
    if !without.contains("ksm_merge_any: no") {
        return println!("SKIPPED: this kernel does not tell whether a process is open to merging: {without:?}");
    }
    assert!(ksm_stat(true).contains("ksm_merge_any: yes"));
}
