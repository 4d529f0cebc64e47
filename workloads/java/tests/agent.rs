//! The driver of the Java application: against one that is played, good and bad, and against the real one where it is built.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::common::{LOOPBACK, closed, open, phases, run, spec, steady};
use tare_driver::java::spec::JavaDrive;
use tare_driver::java::{JavaError, JavaFault};
use tare_driver::{DriverError, drive};
use tare_model::Span;
use tare_model::drive::{DriveResult, DriveSpec};
use tare_model::load::{Arrivals, LoadModel};
use tare_model::packed::Packed;

const TIMEOUT: Duration = Duration::from_secs(20);
/// Operations that the played application had done before the first load.
const BEFORE: u64 = 500;

/// What a played application does where it is asked something.
type Behaviour = fn(&str) -> Act;

enum Act {
    /// As it should.
    Good,
    /// Answers this instead.
    Say(&'static str),
    /// Answers nothing.
    Silence,
    /// Closes the connection.
    Close,
    /// Answers as it should, but late.
    Late(Duration),
}

/// A played application of a thousand operations a second.
struct Application {
    address: SocketAddr,
    heard: Heard,
}

/// What it was asked, and how many operations it had done by then.
type Heard = Arc<Mutex<Vec<(String, u64)>>>;

impl Application {
    fn start(behave: Behaviour) -> Self {
        let listener = TcpListener::bind((LOOPBACK, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let heard = Heard::default();
        let note = Arc::clone(&heard);
        thread::spawn(move || {
            for connection in listener.incoming().flatten() {
                serve(connection, behave, &note);
            }
        });
        Self { address, heard }
    }

    fn heard(&self) -> Vec<String> {
        let heard = self.heard.lock().unwrap_or_else(PoisonError::into_inner);
        heard.iter().map(|(line, _)| line.clone()).collect()
    }

    fn count_at(&self, question: &str) -> u64 {
        let heard = self.heard.lock().unwrap_or_else(PoisonError::into_inner);
        heard.iter().find(|(line, _)| line == question).unwrap().1
    }
}

fn serve(connection: TcpStream, behave: Behaviour, heard: &Mutex<Vec<(String, u64)>>) {
    let mut answers = connection.try_clone().unwrap();
    let (mut started, mut stopped): (Option<Instant>, Option<u64>) = (None, None);
    for line in BufReader::new(connection).lines().map_while(Result::ok) {
        let count = stopped.unwrap_or(BEFORE + started.map_or(0, |at| at.elapsed().as_millis() as u64));
        heard.lock().unwrap().push((line.clone(), count));
        let good = match line.split(' ').next().unwrap() {
            "hello" => {
                "ready 1 groups=2 live_heap_bytes=50 heap_max_bytes=90 java=17.0.9 collector=Serial pid=1".into()
            }
            "load" => "ok".into(),
            "start" => {
                started = Some(Instant::now());
                "ok".into()
            }
            "begin" | "count" | "end" => format!("count {count}"),
            "stop" => {
                stopped = Some(count);
                format!("stopped {count}")
            }
            "result" => result_lines(count),
            "verify" => "right".into(),
            other => panic!("asked {other}"),
        };
        let answer = match behave(&line) {
            Act::Good => good,
            Act::Say(other) => other.to_owned(),
            Act::Silence => continue,
            Act::Close => return,
            Act::Late(span) => {
                thread::sleep(span);
                good
            }
        };
        if answers.write_all(format!("{answer}\n").as_bytes()).is_err() {
            return;
        }
    }
}

fn result_lines(count: u64) -> String {
    format!(
        "bin response 1000 1001 7\nbin response 1002 1003 3\nstat response 1000 1003 10010\nbin service 900 901 10\n\
         stat service 900 901 9005\ntransaction payment {}\ntransaction new-order {}\nvalue dropped 3\n\
         value heap_used_bytes 60\nvalue heap_committed_bytes 80\nvalue allocated_bytes 1000\nvalue collections 4\n\
         value collection_ms 5\nvalue cpu_ns 6\n.",
        count / 2,
        count - count / 2
    )
}

fn java(address: SocketAddr, load: LoadModel, timeout: Duration) -> DriveSpec {
    let drive = JavaDrive { timeout_ns: timeout.as_nanos() as u64, ask_every_ns: 20_000_000 };
    DriveSpec { phases: phases(60, 0, 200, 60), ..spec(drive, address, load, steady(1)) }
}

fn fault(result: Result<DriveResult, DriverError>) -> (String, JavaFault) {
    let Err(DriverError::Application(error)) = result else { panic!("{result:?}") };
    let error = error.downcast::<JavaError>().unwrap();
    (error.asked, error.fault)
}

#[test]
fn a_run_goes_through_its_phases_and_reports_what_the_application_reported() {
    let application = Application::start(|_| Act::Good);
    let spec = java(application.address, open(250.5, Arrivals::Poisson, 2), TIMEOUT);
    let progress = Mutex::new(0);
    let never = AtomicBool::new(false);
    let result = drive::run(&spec, &|interval| *progress.lock().unwrap() += interval.operations, &never).unwrap();
    let counted = |question| application.count_at(question);
    assert!(result.steady_end_ns > result.steady_start_ns);
    assert_eq!(result.operations, counted("end") - counted("begin"));
    assert_eq!(result.answered_total, counted("stop") - BEFORE);
    assert!(result.operations > 0 && result.answered_total > result.operations);
    assert_eq!(result.intervals.iter().map(|i| i.operations).sum::<u64>(), result.answered_total);
    assert_eq!(*progress.lock().unwrap(), result.answered_total);
    assert!(result.intervals.is_sorted_by_key(|interval| interval.end_ns));
    assert_eq!(result.errors, [("starts dropped: more than 1 s late".to_owned(), 3)]);
    let (response, service) = (&result.response, &result.service);
    assert_eq!((response.count(), response.min, response.max, response.sum), (10, 1000, 1003, 10_010));
    assert_eq!((response.failed, service.failed), (3, 3), "what was never started is longer than all that was");
    assert_eq!((service.count(), result.lateness.count(), result.threads), (10, 0, 1));
    assert!(result.granted.contains(&("application_java".to_owned(), "17.0.9".to_owned())), "{:?}", result.granted);
    let done = result.outcome::<JavaDrive>().unwrap();
    assert_eq!((done.groups, done.live_heap_bytes, done.heap_used_bytes, done.cpu_ns), (2, 50, 60, 6));
    assert_eq!(done.transactions.values().sum::<u64>(), BEFORE + result.answered_total);
    assert_eq!(done.wrong, None);
    let mut heard = application.heard();
    let counts = heard.iter().filter(|line| *line == "count").count();
    assert!(counts >= 3, "asked {counts} times how many operations are done");
    heard.retain(|line| line != "count");
    assert_eq!(heard, ["hello 1", "load rate=250.5 seed=7", "start", "begin", "end", "stop", "result", "verify"]);
}

/// The threads of a closed loop know no rate, and a later run connects anew.
#[test]
fn a_closed_loop_is_not_throttled_and_the_next_run_is_another_connection() {
    let application = Application::start(|_| Act::Good);
    for _ in 0..2 {
        run(&java(application.address, closed(2), TIMEOUT)).unwrap();
    }
    let heard = application.heard();
    assert_eq!(heard.iter().filter(|line| *line == "hello 1").count(), 2);
    assert_eq!(heard.iter().filter(|line| *line == "load rate=0 seed=7").count(), 2);
}

#[test]
fn another_number_of_groups_is_reported_before_any_load() {
    let application = Application::start(|_| Act::Good);
    let error = run(&java(application.address, closed(3), TIMEOUT)).unwrap_err();
    assert!(error.to_string().contains("as many clients"), "{error}");
    let (_, fault) = fault(Err(error));
    assert!(matches!(fault, JavaFault::Groups { groups: 2, connections: 3 }), "{fault}");
    assert_eq!(application.heard(), ["hello 1"]);
}

#[test]
fn wrong_work_is_reported_with_its_reason() {
    let verdicts: [(Behaviour, &str); 2] = [
        (
            |line| if line == "verify" { Act::Say("wrong money of group 1: 5 too much") } else { Act::Good },
            "5 too much",
        ),
        (|line| if line == "stop" { Act::Say("stopped 1000000") } else { Act::Good }, "add up"),
    ];
    for (behave, reason) in verdicts {
        let application = Application::start(behave);
        let result = run(&java(application.address, closed(2), TIMEOUT)).unwrap();
        let wrong = result.outcome::<JavaDrive>().unwrap().wrong.unwrap();
        assert!(wrong.contains(reason) && !result.verified, "{wrong}");
    }
}

#[test]
fn an_answer_that_is_none_ends_the_run_with_what_was_asked() {
    let cases: [(Behaviour, &str, &str); 9] = [
        (|line| if line == "hello 1" { Act::Say("SSH-2.0-OpenSSH_9") } else { Act::Good }, "hello 1", "SSH-2.0"),
        (|line| if line.starts_with("load") { Act::Say("error no") } else { Act::Good }, "load rate=0", "refused: no"),
        (|line| if line == "start" { Act::Say("count 5") } else { Act::Good }, "start", "`ok`"),
        (|line| if line == "begin" { Act::Say("count x\x1b[2J") } else { Act::Good }, "begin", "count x\\x1b[2J"),
        (|line| if line == "end" { Act::Say("count 1") } else { Act::Good }, "end", "no smaller"),
        (|line| if line == "stop" { Act::Say("ok") } else { Act::Good }, "stop", "`stopped`"),
        (|line| if line == "result" { Act::Say("bin response 5 4 1\n.") } else { Act::Good }, "result", "bin response"),
        (|line| if line == "verify" { Act::Say("maybe") } else { Act::Good }, "verify", "maybe"),
        (|line| if line == "result" { Act::Say("value dropped 0\n.") } else { Act::Good }, "verify", "heap_used_bytes"),
    ];
    for (behave, asked, says) in cases {
        let application = Application::start(behave);
        let error = run(&java(application.address, closed(2), TIMEOUT)).unwrap_err();
        let message = error.to_string();
        assert!(matches!(error, DriverError::Application(_)), "{message}");
        assert!(message.contains(&format!("last asked `{asked}")) && message.contains(says), "{message}");
    }
}

/// An answer to nothing would be taken for that to the next question.
#[test]
fn an_answer_too_many_is_seen() {
    let application = Application::start(|line| if line == "start" { Act::Say("ok\ncount 9") } else { Act::Good });
    let (_, fault) = fault(run(&java(application.address, closed(2), TIMEOUT)));
    assert!(matches!(fault, JavaFault::Unfit { .. }), "{fault}");
}

#[test]
fn a_silent_application_costs_the_timeout_and_no_more() {
    let silences: [(Behaviour, &str); 3] = [
        (|line| if line == "hello 1" { Act::Silence } else { Act::Good }, "hello 1"),
        (|line| if line == "end" { Act::Silence } else { Act::Good }, "end"),
        // Lines come, but never the last.
        (|line| if line == "result" { Act::Say("value dropped 0") } else { Act::Good }, "result"),
    ];
    for (behave, at) in silences {
        let application = Application::start(behave);
        let began = Instant::now();
        let (asked, fault) = fault(run(&java(application.address, closed(2), Duration::from_millis(300))));
        assert!(asked == at && matches!(fault, JavaFault::Silent(_)), "{asked}: {fault}");
        assert!(began.elapsed() < TIMEOUT);
    }
}

#[test]
fn one_that_dies_in_the_window_is_reported_at_once() {
    let application = Application::start(|line| if line == "end" { Act::Close } else { Act::Good });
    let began = Instant::now();
    let (asked, fault) = fault(run(&java(application.address, closed(2), 10 * TIMEOUT)));
    assert!(asked == "end" && matches!(fault, JavaFault::Closed | JavaFault::Broken(_)), "{asked}: {fault}");
    assert!(began.elapsed() < TIMEOUT);
}

#[test]
fn lines_and_results_without_end_are_not_taken_in() {
    for endless in [&[b'x'; 1 << 16][..], b"value dropped 0\n"] {
        let listener = TcpListener::bind((LOOPBACK, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        thread::spawn(move || {
            let mut connection = listener.accept().unwrap().0;
            let mut lines = BufReader::new(connection.try_clone().unwrap()).lines();
            for answer in ["ready 1 groups=2", "ok", "count 0", "ok"] {
                let question = lines.next().unwrap().unwrap();
                assert!(!question.is_empty());
                writeln!(connection, "{answer}").unwrap();
            }
            while let Some(Ok(question)) = lines.next() {
                match question.as_str() {
                    // Also the last word of a driver that gives up, which is gone by then.
                    "stop" => drop(writeln!(connection, "stopped 0")),
                    "result" => while connection.write_all(endless).is_ok() {},
                    _ => writeln!(connection, "count 0").unwrap(),
                }
            }
        });
        let (asked, fault) = fault(run(&java(address, closed(2), TIMEOUT)));
        assert!(asked == "result" && matches!(fault, JavaFault::TooLong { .. }), "{asked}: {fault}");
    }
}

#[test]
fn a_cancel_ends_the_run_at_once_and_the_application_hears_of_it() {
    let behaviours: [Behaviour; 2] =
        // At rest between two questions, and while an answer is waited for.
        [|_| Act::Good, |line| if line == "count" { Act::Late(Duration::from_millis(100)) } else { Act::Good }];
    for behave in behaviours {
        let application = Application::start(behave);
        let mut spec = java(application.address, closed(2), 10 * TIMEOUT);
        spec.phases = steady(600_000);
        let cancel = AtomicBool::new(false);
        thread::scope(|scope| {
            let running = scope.spawn(|| drive::run(&spec, &|_| (), &cancel));
            while !application.heard().iter().any(|line| line == "begin") {
                thread::sleep(Duration::from_millis(1));
            }
            let began = Instant::now();
            cancel.store(true, Ordering::Relaxed);
            assert!(matches!(running.join().unwrap(), Err(DriverError::Cancelled)));
            assert!(began.elapsed() < TIMEOUT);
        });
        let began = Instant::now();
        while application.heard().last().unwrap() != "stop" {
            assert!(began.elapsed() < TIMEOUT, "{:?}", application.heard());
            thread::sleep(Duration::from_millis(1));
        }
    }
}

#[test]
fn an_edge_that_is_vague_is_reported() {
    let late: Behaviour = |line| if line == "begin" { Act::Late(Duration::from_millis(30)) } else { Act::Good };
    let application = Application::start(late);
    let result = run(&java(application.address, closed(2), TIMEOUT)).unwrap();
    let begin = result.granted.iter().find(|(name, _)| name == "window_begin_answered_after");
    assert!(begin.is_some_and(|(_, value)| value.contains("% of the window")), "{:?}", result.granted);
}

#[test]
fn an_application_that_is_not_there_yet_is_waited_for_and_one_that_never_comes_is_not() {
    let address = TcpListener::bind((LOOPBACK, 0)).unwrap().local_addr().unwrap();
    let error = run(&java(address, closed(2), Duration::from_millis(50))).unwrap_err();
    assert!(matches!(error, DriverError::Connect { .. }), "{error}");
    let (never, cancelled) = (AtomicBool::new(false), AtomicBool::new(true));
    thread::scope(|scope| {
        let spec = java(address, closed(2), TIMEOUT);
        let waiting = scope.spawn(move || drive::prepare(&spec, &never).map(drop));
        thread::sleep(Duration::from_millis(50));
        let listener = TcpListener::bind(address).unwrap();
        let heard = Mutex::new(Vec::new());
        serve(listener.accept().unwrap().0, |_| Act::Good, &heard);
        waiting.join().unwrap().unwrap();
    });
    let error = drive::prepare(&java(address, closed(2), TIMEOUT), &cancelled).map(drop).unwrap_err();
    assert!(matches!(error, DriverError::Cancelled), "{error}");
}

#[test]
fn a_load_that_the_application_does_not_know_is_refused_before_it_is_connected_to() {
    let nowhere = "127.0.0.1:9".parse().unwrap();
    let thinking = LoadModel::Closed { clients: 2, think_time: Span::from_millis(1) };
    for load in [thinking, open(10.0, Arrivals::Uniform, 2), closed(0)] {
        let error = run(&java(nowhere, load, TIMEOUT)).unwrap_err();
        assert!(matches!(error, DriverError::Invalid { .. }), "{error}");
    }
    let mut hurried = java(nowhere, closed(2), TIMEOUT);
    hurried.task = Packed::of(&JavaDrive { timeout_ns: 1, ask_every_ns: 0 }).unwrap();
    assert!(matches!(run(&hurried).unwrap_err(), DriverError::Invalid { .. }));
}

/// The real application, ended with this.
struct Real {
    child: Child,
    address: SocketAddr,
}

impl Drop for Real {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Starts the application with two data groups; says why not where it is not built.
fn real() -> Option<Real> {
    let cache = std::env::var_os("TARE_CACHE").map_or_else(|| PathBuf::from("/var/cache/tare"), PathBuf::from);
    let bundle = cache.join("bundle/java");
    let (program, jar) = (bundle.join("runtime/bin/java"), bundle.join("tare-java.jar"));
    if !program.is_file() || !jar.is_file() {
        println!("SKIPPED: there is no application in {} (scripts/bundle.sh java builds it)", bundle.display());
        return None;
    }
    let mut command = Command::new(program);
    command.args(["-Xmx512m", "-XX:+UseSerialGC", "-jar"]).arg(jar).arg("serve");
    command.args(["--listen", "127.0.0.1:0", "--groups", "2"]).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let listening = lines.find_map(|line| line.ok()?.strip_prefix("listening ").map(str::to_owned));
    thread::spawn(move || lines.for_each(drop));
    let Some(listening) = listening else { panic!("it ended: {:?}", child.wait()) };
    let address = listening.split(' ').next().unwrap().parse().unwrap();
    Some(Real { child, address })
}

#[test]
fn the_real_application_is_driven_again_and_again() {
    let Some(real) = real() else { return };
    let rate = 300.0;
    for load in [open(rate, Arrivals::Poisson, 2), closed(2)] {
        let mut spec = java(real.address, load, TIMEOUT);
        spec.phases = phases(200, 0, 1500, 100);
        let result = run(&spec).unwrap();
        println!("{load:?}: {} operations, {:?}", result.operations, result.outcome::<JavaDrive>());
        let done = result.outcome::<JavaDrive>().unwrap();
        assert_eq!(done.wrong, None);
        let offered = result.operations + result.errors.iter().map(|(_, count)| count).sum::<u64>();
        let expected = rate * (result.steady_end_ns - result.steady_start_ns) as f64 / 1e9;
        if matches!(load, LoadModel::Open { .. }) {
            let near = expected / 2.0..2.0 * expected;
            assert!(near.contains(&(offered as f64)), "{offered} of {expected}");
            assert!(!result.lateness.is_empty());
        } else {
            assert!(result.operations > 0);
        }
        // The window of the application begins and ends while the driver waits for the answer.
        let differ = result.response.count().abs_diff(result.operations);
        assert!(differ <= 10 + result.operations / 10, "{} times of {}", result.response.count(), result.operations);
        assert!(result.intervals.len() > 10);
    }
    let cancel = AtomicBool::new(false);
    let seen = |_| cancel.store(true, Ordering::Relaxed);
    let mut spec = java(real.address, closed(2), TIMEOUT);
    spec.phases = steady(600_000);
    assert!(matches!(drive::run(&spec, &seen, &cancel), Err(DriverError::Cancelled)));
    spec.phases = steady(100);
    assert_eq!(run(&spec).unwrap().outcome::<JavaDrive>().unwrap().wrong, None, "after a cancel");
    let mut stranger = TcpStream::connect(real.address).unwrap();
    stranger.write_all(b"GET / HTTP/1.1\n").unwrap();
    let mut said = [0; 6];
    stranger.read_exact(&mut said).unwrap();
    assert_eq!(&said, b"error ");
}
