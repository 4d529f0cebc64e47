//! The agent's program as a controller meets it.

use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tare_model::Span;
use tare_model::drive::{DriveSpec, Exchange, SocketDrive, SocketOptions, SocketServer, Wait};
use tare_model::load::{LoadModel, Phases};
use tare_model::packed::Packed;
use tare_model::token::Token;
use tare_wire::{
    ExecResult, ExecSpec, FromAgent, Greeting, Link, Reply, Request, ToAgent, WireError, read_frame, write_frame,
};

const TIMEOUT: Duration = Duration::from_secs(20);

fn spawn(arguments: &[&str]) -> Child {
    Command::new(env!("CARGO_BIN_EXE_tare-agent"))
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

fn open(child: &mut Child, lifetime: Duration) -> Link {
    let (reader, writer) = (child.stdout.take().unwrap(), child.stdin.take().unwrap());
    Link::open(Box::new(reader), Box::new(writer), TIMEOUT, lifetime).unwrap()
}

fn exec(link: &Link, script: &str, timeout: Duration, limit: u64) -> Result<ExecResult, WireError> {
    let spec = ExecSpec {
        env: vec![("GREETING".into(), "hello".into())],
        directory: Some("/".into()),
        ..ExecSpec::new(&["sh", "-c", script], timeout, limit)
    };
    link.call(Request::Exec(spec), TIMEOUT).map(|reply| match reply {
        Reply::Executed(result) => result,
        other => panic!("{other:?}"),
    })
}

/// Waits for a condition of the system's.
fn eventually(what: &str, condition: impl Fn() -> bool) {
    let began = Instant::now();
    while !condition() {
        assert!(began.elapsed() < TIMEOUT, "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn is_alive(pid: &str) -> bool {
    // A zombie has no command line.
    std::fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|line| !line.is_empty())
}

#[test]
fn commands_run_and_how_they_ended_is_reported() {
    let mut child = spawn(&[]);
    let link = open(&mut child, TIMEOUT);
    let ran = exec(&link, "echo $GREETING; pwd; echo oops >&2; exit 3", TIMEOUT, 1000).unwrap();
    assert_eq!((ran.code, ran.signal, ran.timed_out), (Some(3), None, false));
    assert_eq!((ran.stdout.as_slice(), ran.stderr.as_slice()), (&b"hello\n/\n"[..], &b"oops\n"[..]));
    let ran = exec(&link, "kill -TERM $$", TIMEOUT, 1000).unwrap();
    assert_eq!((ran.code, ran.signal), (None, Some(15)));
    let ran = exec(&link, "head -c 100000 /dev/zero; echo end", TIMEOUT, 10).unwrap();
    assert_eq!((ran.stdout.len(), ran.dropped_bytes), (10, 99_994));
    assert!(ran.stdout.ends_with(b"end\n"));
    link.call(Request::Bye, TIMEOUT).unwrap();
    assert!(child.wait().unwrap().success());
}

#[test]
fn a_command_that_cannot_start_says_why() {
    let mut child = spawn(&[]);
    let link = open(&mut child, TIMEOUT);
    let refuse = |argv: &[&str], directory: Option<&str>| {
        let spec =
            ExecSpec { directory: directory.map(str::to_owned), ..ExecSpec::new(argv, Duration::from_secs(1), 10) };
        link.call(Request::Exec(spec), TIMEOUT).unwrap_err().to_string()
    };
    assert!(refuse(&["no-such-program"], None).contains("no such program"));
    assert!(refuse(&["/etc/passwd"], None).contains("executable"));
    assert!(refuse(&["true"], Some("/no/such/place")).contains("directory /no/such/place"));
    assert!(refuse(&[], None).contains("no program was named"));
}

/// A command as the user and group nobody.
fn as_nobody(argv: &[&str], directory: Option<&str>) -> ExecSpec {
    ExecSpec {
        user: Some((65_534, 65_534)),
        directory: directory.map(str::to_owned),
        ..ExecSpec::new(argv, TIMEOUT, 10_000)
    }
}

#[test]
fn a_command_runs_as_the_user_it_is_to_run_as() {
    let mut child = spawn(&[]);
    let link = open(&mut child, TIMEOUT);
    if !rustix::process::geteuid().is_root() {
        let message = link.call(Request::Exec(as_nobody(&["true"], None)), TIMEOUT).unwrap_err().to_string();
        assert!(message.contains("user 65534") && message.contains("not root"), "{message}");
        return println!("SKIPPED: needs root, to become another user");
    }
    let script = "grep -E '^(Uid|Gid|Groups):' /proc/self/status; pwd; echo x > /etc/tare-not-to-be";
    let reply = link.call(Request::Exec(as_nobody(&["sh", "-c", script], None)), TIMEOUT).unwrap();
    let Reply::Executed(ran) = reply else { panic!("{reply:?}") };
    let said = String::from_utf8(ran.stdout.clone()).unwrap();
    let lines: Vec<Vec<&str>> = said.lines().map(|line| line.split_whitespace().collect()).collect();
    let nobody = ["65534"; 4];
    assert_eq!((&lines[0][1..], &lines[1][1..]), (&nobody[..], &nobody[..]), "{said}");
    assert_eq!(lines[2], ["Groups:"], "further groups: {said}");
    assert_eq!(lines[3], ["/"], "{said}");
    assert!(ran.code != Some(0) && !std::path::Path::new("/etc/tare-not-to-be").exists(), "{ran:?}");

    let closed = tempfile::tempdir().unwrap();
    std::fs::set_permissions(closed.path(), PermissionsExt::from_mode(0o700)).unwrap();
    let refuse = |argv: &[&str], directory: Option<&str>| {
        link.call(Request::Exec(as_nobody(argv, directory)), TIMEOUT).unwrap_err().to_string()
    };
    let message = refuse(&["true"], closed.path().to_str());
    assert!(message.contains("user 65534") && message.contains("pass through"), "{message}");
    let program = closed.path().join("program");
    std::fs::copy("/bin/true", &program).unwrap();
    let message = refuse(&[program.to_str().unwrap()], None);
    assert!(message.contains("user 65534") && message.contains("pass through"), "{message}");
}

/// Where only one user is known, as in a user namespace, no other can be become.
#[test]
fn a_user_that_the_guest_does_not_know_is_reported() {
    let child = Command::new("unshare")
        .args(["--user", "--map-root-user", env!("CARGO_BIN_EXE_tare-agent")])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn();
    let Ok(mut child) = child else { return println!("SKIPPED: needs unshare") };
    let (reader, writer) = (child.stdout.take().unwrap(), child.stdin.take().unwrap());
    let Ok(link) = Link::open(Box::new(reader), Box::new(writer), TIMEOUT, TIMEOUT) else {
        child.wait().unwrap();
        return println!("SKIPPED: needs user namespaces");
    };
    let message = link.call(Request::Exec(as_nobody(&["true"], None)), TIMEOUT).unwrap_err().to_string();
    assert!(message.contains("user 65534") && message.contains("no such user"), "{message}");
    link.call(Request::Bye, TIMEOUT).unwrap();
    child.wait().unwrap();
}

#[test]
fn a_timeout_ends_a_command_with_its_children_and_nothing_else() {
    let mut child = spawn(&[]);
    let link = open(&mut child, TIMEOUT);
    let began = Instant::now();
    let ran = exec(&link, "sleep 1000 & echo $!; yes >&2", Duration::from_millis(100), 1000).unwrap();
    assert!(ran.timed_out && ran.signal == Some(9), "{ran:?}");
    assert!(began.elapsed() < TIMEOUT);
    let sleeper = String::from_utf8(ran.stdout).unwrap().trim().to_owned();
    eventually("the sleeper is killed with its group", || !is_alive(&sleeper));
    assert!(matches!(link.call(Request::Clock, TIMEOUT), Ok(Reply::Clock { .. })));
}

#[test]
fn requests_do_not_wait_for_each_other() {
    let mut child = spawn(&[]);
    let link = open(&mut child, TIMEOUT);
    std::thread::scope(|scope| {
        let slow = scope.spawn(|| exec(&link, "sleep 1000", Duration::from_secs(2), 10).unwrap());
        for _ in 0..10 {
            link.call(Request::Clock, Duration::from_secs(1)).unwrap();
        }
        assert!(!slow.is_finished());
        assert!(slow.join().unwrap().timed_out);
    });
}

#[test]
fn what_a_command_left_behind_dies_with_the_agent_and_the_agent_with_its_controller() {
    let mut child = spawn(&[]);
    let link = open(&mut child, TIMEOUT);
    // In a session of its own, and an orphan.
    let ran = exec(&link, "setsid sh -c 'sleep 1000' >/dev/null 2>&1 & echo $!", TIMEOUT, 100).unwrap();
    let orphan = String::from_utf8(ran.stdout).unwrap().trim().to_owned();
    // In the midst of an exec a process has no command line for a moment.
    eventually("the orphan lives on", || is_alive(&orphan));
    // Dropping the link closes the stream, as the kernel does when a controller is killed.
    drop(link);
    assert!(child.wait().unwrap().success());
    eventually("the orphan is killed", || !is_alive(&orphan));
}

#[test]
fn orphans_are_collected_and_nobodys_exit_status_is_stolen() {
    let mut child = spawn(&[]);
    let link = open(&mut child, TIMEOUT);
    for _ in 0..50 {
        let ran = exec(&link, "(sleep 0.01 &) ; exit 5", TIMEOUT, 10).unwrap();
        assert_eq!(ran.code, Some(5));
    }
    let pid = child.id();
    let zombies = || {
        let children = std::fs::read_dir("/proc").unwrap().flatten().filter(|entry| {
            let stat = std::fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
            stat.rsplit_once(')').is_some_and(|(_, rest)| rest.starts_with(&format!(" Z {pid} ")))
        });
        children.count()
    };
    // The reaper is woken by the next child's end at the latest.
    exec(&link, "sleep 0.05", TIMEOUT, 10).unwrap();
    eventually("orphans are collected", || zombies() == 0);
}

#[test]
fn nonsense_on_the_channel_ends_the_agent_with_its_code() {
    for bytes in [&b"GET / HTTP/1.1\r\n\r\n"[..], b"\xff\xff\xff\xff", &[3, 0, 0, 0, 9, 120, 9]] {
        let mut child = spawn(&[]);
        let mut input = child.stdin.take().unwrap();
        if !bytes.starts_with(b"GET") {
            Greeting::ours().write(&mut input).unwrap();
        }
        input.write_all(bytes).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(3));
        let mut said = String::new();
        child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        assert!(said.starts_with("tare-agent: "), "{said}");
    }
}

#[test]
fn nothing_is_done_before_the_hello_and_life_ends_when_it_is_over() {
    let mut child = spawn(&[]);
    let (mut reader, mut writer) = (child.stdout.take().unwrap(), child.stdin.take().unwrap());
    Greeting::ours().write(&mut writer).unwrap();
    Greeting::read(&mut reader).unwrap();
    write_frame(&mut writer, &ToAgent { id: 1, request: Request::Clock }).unwrap();
    let answer: FromAgent = read_frame(&mut reader).unwrap().unwrap();
    assert!(answer.result.unwrap_err().contains("hello"));
    write_frame(&mut writer, &ToAgent { id: 2, request: Request::Hello { lifetime_ns: 50_000_000 } }).unwrap();
    let answer: FromAgent = read_frame(&mut reader).unwrap().unwrap();
    assert!(matches!(answer.result, Ok(Reply::Hello { .. })));
    assert_eq!(child.wait().unwrap().code(), Some(4));
}

#[test]
fn a_controller_that_does_not_read_does_not_stop_the_work() {
    let mut child = spawn(&[]);
    let (mut reader, mut writer) = (child.stdout.take().unwrap(), child.stdin.take().unwrap());
    Greeting::ours().write(&mut writer).unwrap();
    Greeting::read(&mut reader).unwrap();
    write_frame(&mut writer, &ToAgent { id: 0, request: Request::Hello { lifetime_ns: u64::MAX } }).unwrap();
    // More answers than a pipe holds, then a command whose effect shows outside of the channel.
    for id in 1..10_000 {
        write_frame(&mut writer, &ToAgent { id, request: Request::Clock }).unwrap();
    }
    let place = tempfile::tempdir().unwrap();
    let mark = place.path().join("mark");
    let argv = vec!["touch".to_owned(), mark.to_string_lossy().into_owned()];
    let spec = ExecSpec { user: None, argv, env: vec![], directory: None, timeout_ns: u64::MAX, output_limit_bytes: 0 };
    write_frame(&mut writer, &ToAgent { id: 10_000, request: Request::Exec(spec) }).unwrap();
    eventually("the command ran although nobody read", || mark.exists());
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn what_cannot_be_entered_is_said_in_one_line() {
    for (json, code, words) in [
        ("{", 2, "not a launch description"),
        (
            r#"{"cgroup_procs":["/no/such/group"],"netns":null,"cpu_set":[],"unshare":[],"root":null,"hostname":null,"argv":[]}"#,
            5,
            "/no/such/group",
        ),
        (
            r#"{"cgroup_procs":[],"netns":"/dev/null","cpu_set":[],"unshare":[],"root":null,"hostname":null,"argv":[]}"#,
            5,
            "network namespace",
        ),
        (
            r#"{"cgroup_procs":[],"netns":null,"cpu_set":[],"unshare":[],"root":null,"hostname":"x","argv":[]}"#,
            5,
            "host name",
        ),
        (
            r#"{"cgroup_procs":[],"netns":null,"cpu_set":[],"unshare":["mount"],"root":null,"shown":[{"from":"/etc","at":"/x"}],"hostname":null,"argv":[]}"#,
            5,
            "without a new root",
        ),
        (
            r#"{"cgroup_procs":[],"netns":null,"cpu_set":[],"unshare":["mount"],"root":{"overlay":{"lower":"/","upper":"memory"}},"shown":[{"from":"/none/at/all","at":"/x"}],"hostname":null,"argv":[]}"#,
            5,
            "/none/at/all",
        ),
        (
            r#"{"cgroup_procs":[],"netns":null,"cpu_set":[],"unshare":[],"root":null,"hostname":null,"argv":["/no/program"]}"#,
            5,
            "/no/program",
        ),
    ] {
        let mut child = spawn(&["enter", json]);
        assert_eq!(child.wait().unwrap().code(), Some(code), "{json}");
        let mut said = String::new();
        child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        assert!(said.contains(words) && said.lines().count() == 1, "{said}");
    }
}

/// The memory that it had before it joined its control groups would stay charged to somebody else.
#[test]
fn an_agent_begins_anew_in_its_control_groups() {
    let place = tempfile::tempdir().unwrap();
    let procs = place.path().join("cgroup.procs");
    std::fs::write(&procs, "").unwrap();
    let launch = format!(
        r#"{{"cgroup_procs":[{procs:?}],"netns":null,"cpu_set":[],"unshare":[],"root":null,"hostname":null,"argv":[]}}"#
    );
    let mut child = spawn(&["enter", &launch]);
    let link = open(&mut child, TIMEOUT);
    let of_agent = |file: &str| std::fs::read_to_string(format!("/proc/{}/{file}", child.id())).unwrap();
    assert_eq!(std::fs::read_to_string(&procs).unwrap(), "0");
    assert!(of_agent("cmdline").contains(r#""cgroup_procs":[]"#), "it joins once, then starts anew");
    assert_eq!(of_agent("comm"), "tare-agent\n");
    // Its process group, its session and its controlling terminal.
    let (stat, own) = (of_agent("stat"), child.id().to_string());
    let fields: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
    assert_eq!(fields[2..5], [own.as_str(), &own, "0"], "it makes itself a session: {stat}");
    link.call(Request::Bye, TIMEOUT).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

/// A container of plain namespaces, also where this test is not run by root.
/// It says that it waits, takes one byte and no more, and then is what it was to be; without the byte it ends.
#[test]
fn an_agent_that_waits_begins_when_it_is_let() {
    let hear = |child: &mut Child| {
        let mut said = vec![0; tare_wire::launch::WAITING.len()];
        child.stdout.as_mut().unwrap().read_exact(&mut said).unwrap();
        assert_eq!(said, tare_wire::launch::WAITING);
    };
    let mut child = spawn(&["wait"]);
    hear(&mut child);
    child.stdin.as_mut().unwrap().write_all(b"\n").unwrap();
    let link = open(&mut child, Duration::from_secs(60));
    let ran = exec(&link, "echo begun", Duration::from_secs(20), 100).unwrap();
    assert_eq!(ran.stdout, b"begun\n");
    drop(link);
    assert!(child.wait().is_ok());
    let mut alone = spawn(&["wait"]);
    hear(&mut alone);
    drop(alone.stdin.take());
    assert!(alone.wait().unwrap().success());
}

#[test]
fn inside_a_container_writes_stay_inside_and_nothing_outlives_it() {
    // Below the place that the new root is built on.
    let shown = tempfile::tempdir_in("/tmp").unwrap();
    std::fs::write(shown.path().join("table"), "the host's\n").unwrap();
    let launch = format!(
        r#"{{"cgroup_procs":[],"netns":null,"cpu_set":[],"unshare":["mount","pid","ipc","uts"],"root":{{"overlay":{{"lower":"/","upper":"memory"}}}},"shown":[{{"from":{:?},"at":"/.shown/data"}}],"hostname":"inside","argv":[]}}"#,
        shown.path()
    );
    let launch = launch.as_str();
    let agent = env!("CARGO_BIN_EXE_tare-agent");
    for user_namespace in [false, true] {
        let mut command = Command::new(if user_namespace { "unshare" } else { agent });
        if user_namespace {
            command.args(["-U", "-r", "-m", "-n", agent]);
        }
        command.args(["enter", launch]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let (reader, writer) = (child.stdout.take().unwrap(), child.stdin.take().unwrap());
        let link = match Link::open(Box::new(reader), Box::new(writer), TIMEOUT, TIMEOUT) {
            Ok(link) => link,
            Err(error) => {
                let mut said = String::new();
                child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
                assert!(!rustix::process::geteuid().is_root(), "{error}: {said}");
                println!("SKIPPED: namespaces are not allowed here: {said}");
                continue;
            }
        };
        let name = format!("tare-test-{}", std::process::id());
        let script = format!(
            "hostname; cat /proc/1/comm; touch /etc/{name} && echo written; sleep 7654 & ls /dev/null /dev/shm"
        );
        let ran = exec(&link, &script, TIMEOUT, 4000).unwrap();
        let out = String::from_utf8_lossy(&ran.stdout).into_owned();
        assert!(out.starts_with("inside\ntare-agent\nwritten\n"), "{out} {}", String::from_utf8_lossy(&ran.stderr));
        assert!(!std::path::Path::new("/etc").join(&name).exists());
        let ran = exec(&link, "cat /.shown/data/table; echo new > /.shown/data/new", TIMEOUT, 4000).unwrap();
        assert_eq!((ran.code, ran.stdout.as_slice()), (Some(0), &b"the host's\n"[..]), "{ran:?}");
        assert!(!std::path::Path::new("/.shown").exists());
        std::fs::remove_file(shown.path().join("new")).unwrap();
        // The outer process is killed without a warning: the inner one and all below it must go.
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(link.call(Request::Clock, TIMEOUT).is_err());
        eventually("the sleeper inside is gone", || {
            !std::fs::read_dir("/proc")
                .unwrap()
                .flatten()
                .any(|entry| std::fs::read(entry.path().join("cmdline")).is_ok_and(|line| line == b"sleep\x007654\x00"))
        });
    }
}

#[test]
fn a_cancel_kills_commands_with_their_children_and_those_that_come_later() {
    let mut child = spawn(&[]);
    let link = open(&mut child, TIMEOUT);
    let place = tempfile::tempdir().unwrap();
    let pids = place.path().join("pids");
    let script = format!("sleep 1000 & echo $! $$ > {0}.new; mv {0}.new {0}; wait", pids.display());
    std::thread::scope(|scope| {
        let running = scope.spawn(|| exec(&link, &script, Duration::from_secs(1000), 10));
        eventually("the command runs", || pids.exists());
        link.call(Request::Cancel, TIMEOUT).unwrap();
        let error = running.join().unwrap().unwrap_err().to_string();
        assert!(error.contains("was cancelled"), "{error}");
    });
    for pid in std::fs::read_to_string(&pids).unwrap().split_whitespace() {
        eventually("all of its group are killed", || !is_alive(pid));
    }
    let mark = place.path().join("mark");
    let error = exec(&link, &format!("touch {}", mark.display()), TIMEOUT, 10).unwrap_err().to_string();
    assert!(error.contains("was cancelled") && !mark.exists(), "{error}");
    assert!(matches!(link.call(Request::Clock, TIMEOUT), Ok(Reply::Clock { .. })), "the agent itself lives on");
}

/// A closed loop of one client against a server in the same agent, for so long after a warm-up.
fn drive_spec(link: &Link, warm_up_ms: u64, steady_ms: u64) -> DriveSpec {
    let (exchange, wait, socket) = (Exchange::TcpRr, Wait::Block, SocketOptions::default());
    let spec =
        SocketServer::Rr { exchange, request_bytes: 16, response_bytes: 16, wait, hold: None, socket: socket.clone() };
    let bind = std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);
    let Reply::Serving { address, .. } =
        link.call(Request::Serve { task: Packed::of(&spec).unwrap(), bind, from: None }, TIMEOUT).unwrap()
    else {
        panic!("it does not serve");
    };
    let task = Packed::of(&SocketDrive::Rr { exchange, request_bytes: 16, response_bytes: 16, wait }).unwrap();
    let load = LoadModel::Closed { clients: 1, think_time: Span::ZERO };
    let phases = Phases { warm_up: Span::from_millis(warm_up_ms), ..Phases::measuring(Span::from_millis(steady_ms)) };
    DriveSpec { socket, ..DriveSpec::new(task, vec![address], load, phases) }
}

fn prepare(link: &Link, spec: DriveSpec) -> u64 {
    match link.call(Request::PrepareDrive(Box::new(spec)), TIMEOUT).unwrap() {
        Reply::Prepared { drive } => drive,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_driver_starts_when_it_is_asked_and_offers_nothing_before() {
    let mut child = spawn(&[]);
    let link = open(&mut child, TIMEOUT);
    let spec = drive_spec(&link, 100, 50);
    let drive = prepare(&link, spec);
    let Reply::Clock { monotonic_ns } = link.call(Request::Clock, TIMEOUT).unwrap() else { panic!("no clock") };
    let start_at_ns = monotonic_ns + 20_000_000;
    let started = link.call(Request::StartDrive { drive, start_at_ns }, TIMEOUT).unwrap();
    let Reply::Driven(result) = started else { panic!("{started:?}") };
    assert_eq!(result.steady_start_ns, start_at_ns + 100_000_000, "the window is where it was announced");
    assert_eq!(result.steady_end_ns, start_at_ns + 150_000_000);
    assert!(result.operations > 0 && result.answered_total > result.operations);
    let again = link.call(Request::StartDrive { drive, start_at_ns: 0 }, TIMEOUT).unwrap_err().to_string();
    assert!(again.contains("prepared driver"), "{again}");
}

#[test]
fn a_cancel_ends_a_drive_whenever_it_comes() {
    for before_start in [false, true] {
        let mut child = spawn(&[]);
        let link = open(&mut child, TIMEOUT);
        let spec = drive_spec(&link, 0, 1_000_000);
        let drive = prepare(&link, spec.clone());
        std::thread::scope(|scope| {
            if before_start {
                link.call(Request::Cancel, TIMEOUT).unwrap();
            }
            let run = scope.spawn(|| link.call(Request::StartDrive { drive, start_at_ns: 0 }, TIMEOUT));
            if !before_start {
                std::thread::sleep(Duration::from_millis(50));
                link.call(Request::Cancel, TIMEOUT).unwrap();
            }
            let error = run.join().unwrap().unwrap_err().to_string();
            assert!(error.contains("cancelled"), "{error}");
        });
        let error = link.call(Request::PrepareDrive(Box::new(spec)), TIMEOUT).unwrap_err().to_string();
        assert!(error.contains("cancelled"), "{error}");
    }
}

#[test]
fn a_secret_is_kept_until_another_one_is_given_and_a_conversation_can_be_taken_up() {
    let (first, second) = (Token::new([1; Token::LEN]), Token::new([2; Token::LEN]));
    let mut child = spawn(&[]);
    let kept = |link: &Link| match link.call(Request::Kept, TIMEOUT) {
        Ok(Reply::Keeps { secret }) => secret,
        other => panic!("{other:?}"),
    };
    let (reader, writer) = (child.stdout.take().unwrap(), child.stdin.take().unwrap());
    let mut early = std::fs::File::from(writer.as_fd().try_clone_to_owned().unwrap());
    // What the first controller of two says and hears, by hand, over the stream that the second one takes up.
    let mut heard = std::fs::File::from(reader.as_fd().try_clone_to_owned().unwrap());
    Greeting::ours().write(&mut early).unwrap();
    Greeting::read(&mut heard).unwrap().check().unwrap();
    for (id, request) in [(1, Request::Hello { lifetime_ns: 60_000_000_000 }), (2, Request::Keep { secret: first })] {
        write_frame(&mut early, &ToAgent { id, request }).unwrap();
        assert!(read_frame::<FromAgent>(&mut heard).unwrap().unwrap().result.is_ok());
    }
    drop((early, heard));
    let link = Link::take_up(Box::new(reader), Box::new(writer), TIMEOUT, TIMEOUT).unwrap();
    assert_eq!(kept(&link), Some(first));
    link.call(Request::Keep { secret: second }, TIMEOUT).unwrap();
    assert_eq!(kept(&link), Some(second));
    link.call(Request::Bye, TIMEOUT).unwrap();
    assert!(child.wait().unwrap().success());
    let mut other = spawn(&[]);
    assert_eq!(kept(&open(&mut other, TIMEOUT)), None);
    other.wait().unwrap();
}
