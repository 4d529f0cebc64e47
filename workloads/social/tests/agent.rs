//! Users of the social application against one of the tests' own: right answers are counted, faults are reported by kind.

use crate::common::social as fake;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::common::{closed, open, phases, run, steady};
use fake::*;
use tare_driver::social::spec::{InstanceDone, Operation, SocialDone, SocialDrive};
use tare_driver::{DriverError, drive as driver};
use tare_model::drive::{CUT_OFF, DriveResult};
use tare_model::load::Arrivals;

fn done(result: &DriveResult) -> SocialDone {
    result.outcome::<SocialDrive>().unwrap()
}

/// Kinds of faults.
fn kinds(result: &DriveResult) -> Vec<String> {
    done(result).faults.into_iter().map(|(kind, _)| kind).collect()
}

fn app(instance: u32) -> Arc<App> {
    Arc::new(App::new(instance, 25))
}

#[test]
fn users_go_their_way_and_what_they_bring_is_there() {
    let app = app(1);
    let server = serve(Arc::clone(&app), |_| None);
    let drive = SocialDrive { attend: 1.0, ..drive(4) };
    let result = run(&spec(drive, &[server], closed(8), phases(100, 0, 3_000, 0))).unwrap();
    let social = done(&result);
    assert_eq!((social.faults.as_slice(), result.errors.as_slice()), (&[][..], &[][..]));
    let [one] = social.instances.as_slice() else { panic!("{:?}", social.instances) };
    assert_eq!((one.users, one.operations.len()), (8, 7));
    let ended: u64 = one.operations.iter().map(|operation| operation.requests).sum();
    assert_eq!((ended, result.operations), (result.operations, ended));
    assert!(ended > 300, "{ended} operations");
    for (operation, kind) in Operation::ALL.iter().zip(&one.operations) {
        assert_eq!(kind.name, operation.name());
        assert_eq!((kind.good, kind.failed, kind.validation_errors), (kind.requests, 0, 0));
    }
    // What was acknowledged is what is there, for nothing was lost.
    let (people, events, attendances) = app.added();
    assert_eq!((one.added.people, one.added.events), (people, events));
    assert!(one.added.attendances >= attendances && one.added.attendances <= attendances + one.attended);
    assert!(people > 0 && events > 0 && attendances > 0, "{people} {events} {attendances}");
    assert_eq!((one.in_doubt.people, one.in_doubt.events, one.in_doubt.attendances), (0, 0, 0));
    assert_eq!(one.home.references, 10 * one.home.pages);
    assert!(one.home.loaded > one.home.pages && one.event.loaded >= one.event.pages / 2);
    assert!(one.attended > 0 && one.attended.abs_diff(one.could_attend) <= 1, "whoever can says so");
    // 29 files on every page of three users of five.
    assert!(one.requests > 15 * ended && one.not_modified > one.requests / 2, "{one:?}");
    assert_eq!(social.connections, 8, "one connection a user");
    assert!(result.steps[..3].iter().all(|step| step.times.count() > ended / 4), "{:?}", result.steps);
    // Due before the window and ended in it: at most what each user was at when it began, and what had become due behind that.
    assert!(result.lateness.count() > 0 && result.response.count() >= ended - 16);
}

#[test]
fn the_mix_is_that_of_the_table_and_cycles_are_what_was_drawn() {
    let server = serve(app(1), |_| None);
    // Nobody revalidates, so that operations are short against cycles.
    let drive = SocialDrive { revalidating: 0.0, ..drive(60) };
    let result = run(&spec(drive, &[server], closed(20), phases(200, 0, 6_000, 0))).unwrap();
    assert_eq!(kinds(&result), Vec::<&str>::new());
    let one = &done(&result).instances[0];
    let all = result.operations as f64;
    for kind in &one.operations {
        let (share, target) = (kind.requests as f64 / all, kind.target.unwrap());
        // Five standard deviations of a binomial count, and one of the chain's own memory.
        let off = 6.0 * (target * (1.0 - target) / all).sqrt();
        assert!((share - target).abs() <= off, "{}: {share} in place of {target} of {all}", kind.name);
    }
    let (count, drawn, was) = one.cycles;
    assert!(count > 1_000 && was >= drawn * 0.999, "{:?}", one.cycles);
    assert!((drawn / count as f64 / 0.0596 - 1.0).abs() < 0.1, "{:?}", one.cycles);
}

#[test]
fn every_instance_has_users_and_files_of_its_own() {
    let apps = [app(1), app(2)];
    let servers = [serve(Arc::clone(&apps[0]), |_| None), serve(Arc::clone(&apps[1]), |_| None)];
    let drive = SocialDrive { threads: 2, ..drive(5) };
    let result = run(&spec(drive, &servers, closed(9), phases(50, 0, 1_500, 0))).unwrap();
    let social = done(&result);
    assert_eq!(kinds(&result), Vec::<&str>::new());
    assert_eq!(social.instances.iter().map(|one| one.users).collect::<Vec<_>>(), [5, 4]);
    for (one, app) in social.instances.iter().zip(&apps) {
        assert!(one.requests > 200 && app.requests.load(Ordering::Relaxed) >= one.requests, "{one:?}");
        assert_eq!((one.added.people, one.added.events), (app.added().0, app.added().1));
    }
    // The second instance's pictures are not those of the first.
    let swapped = [servers[1], servers[0]];
    let result = run(&spec(SocialDrive { names: 4, ..fake::drive(5) }, &swapped, closed(4), steady(400))).unwrap();
    assert!(kinds(&result).iter().any(|kind| kind == "marker"), "{:?}", kinds(&result));
}

#[test]
fn drives_of_other_loads_follow_one_another_on_the_same_data() {
    let app = app(1);
    let server = serve(Arc::clone(&app), |_| None);
    let mut people = 0;
    for (number, users) in [(1, 4), (2, 12), (3, 2)] {
        let drive = SocialDrive { names: number, ..drive(4) };
        let result = run(&spec(drive, &[server], closed(users), steady(700))).unwrap();
        assert_eq!(kinds(&result), Vec::<&str>::new());
        people += done(&result).instances[0].added.people;
        assert_eq!((done(&result).instances[0].users, app.added().0), (users, people));
    }
}

/// Drives an application that answers wrongly, as `change` has it.
fn wrong(
    timeout_ns: u64,
    change: impl Fn(&App, &Request) -> Option<(Vec<u8>, bool)> + Send + Sync + 'static,
) -> DriveResult {
    let app = app(1);
    let inner = Arc::clone(&app);
    let server = serve(app, move |request| change(&inner, request));
    let drive = SocialDrive { attend: 1.0, timeout_ns, ..drive(3) };
    run(&spec(drive, &[server], closed(4), steady(1_000))).unwrap()
}

/// The application's own answer with a part replaced.
fn patched(app: &App, request: &Request, from: &str, to: &str) -> (Vec<u8>, bool) {
    let answer = app.answer(request);
    let end = answer.windows(4).position(|at| at == b"\r\n\r\n").unwrap() + 4;
    let body = String::from_utf8_lossy(&answer[end..]).replacen(from, to, 1);
    (ok("text/html;charset=utf-8", body.as_bytes()), true)
}

/// What an application that answers wrongly was found to do, which is of one kind; the users have gone on.
fn assert_fault(result: &DriveResult, kind: &str) {
    let social = done(result);
    assert_eq!(kinds(result), [kind]);
    assert_eq!(
        result.errors.iter().filter(|(what, _)| what == kind).collect::<Vec<_>>(),
        social.faults.iter().collect::<Vec<_>>()
    );
    let failed: u64 = social.instances[0].operations.iter().map(|one| one.validation_errors).sum();
    assert!(failed > 0 && failed <= social.faults[0].1, "{kind}: {failed} of {:?}", social.faults);
    assert!(result.operations > 0, "{kind}: the users go on");
}

#[test]
fn every_wrong_body_fails_its_operation_by_its_kind() {
    // Kind, the paths whose answers are changed, and how.
    let cases = [
        ("heading", "/event?", "", "<h1>", "<h1>x"),
        ("heading", "/", "/", "<h1>", "<h2>"),
        ("heading", "/person?", "", "<h1>", "<h1>x"),
        ("user", "/", "/", "\"user\">First", "\"user\">Second"),
        ("end", "/tag", "", "</html>\n", ""),
        ("page", "/tag", "", "<!DOCTYPE html>", ""),
        ("hits", "/tag", "", "hits\">", "hits\">x"),
        ("picture", "/", "/", "<img", "<IMG"),
        ("picture", "/event?", "", "/image/event/", "/image/person/"),
        ("link", "/event?", "", "/person?id=", "/person?id=x"),
        ("attend", "/event/attend", "", "First", "Second"),
        ("name", "/person/check", "", "free", "taken"),
        ("marker", "/static/site/07", "", "<tare ", "<TARE "),
        ("length", "/static/site/02", "", "....", ""),
    ];
    for (kind, begins, ends, from, to) in cases {
        let result = wrong(10 * SECOND, move |app, request| {
            let exactly = begins != "/" || request.path == "/";
            let hit = exactly && request.path.starts_with(begins) && request.path.ends_with(ends);
            (hit && request.field("If-Modified-Since").is_none()).then(|| patched(app, request, from, to))
        });
        assert_fault(&result, kind);
    }
}

#[test]
fn every_wrong_status_or_place_fails_its_operation_by_its_kind() {
    type Change = fn(&App, &Request) -> Option<(Vec<u8>, bool)>;
    let cases: [(&str, Change); 4] = [
        ("status 500", |_, r| r.path.starts_with("/event?").then(|| (status("500 Internal Server Error"), true))),
        ("status 404", |_, r| r.path.ends_with("t.jpg").then(|| (status("404 Not Found"), true))),
        ("login", |app, r| (r.path == "/login").then(|| patched(app, r, "", ""))),
        ("place", |_, r| {
            let answer = b"HTTP/1.1 302 Found\r\nLocation: /\r\nContent-Length: 0\r\n\r\n";
            (r.path == "/event" && r.method == "POST").then(|| (answer.to_vec(), true))
        }),
    ];
    for (kind, change) in cases {
        assert_fault(&wrong(10 * SECOND, change), kind);
    }
}

#[test]
fn whoever_could_not_log_in_or_out_begins_anew_and_an_answer_without_end_is_broken_off() {
    // Nobody who is not logged in asks for the form of an event, which would be refused.
    for path in ["/login", "/logout"] {
        let refuse = move |_: &App, r: &Request| (r.path == path).then(|| (status("503 Service Unavailable"), true));
        assert_fault(&wrong(10 * SECOND, refuse), "status 503");
    }
    let endless = Arc::new(ok("text/html;charset=utf-8", &vec![b'.'; 24 << 20]));
    let result = wrong(10 * SECOND, move |_, request| {
        (request.path.starts_with("/tag") && request.path.ends_with('7')).then(|| (endless.to_vec(), true))
    });
    assert_fault(&result, "endless");
}

#[test]
fn heads_lengths_and_redirections_that_lead_nowhere_are_reported() {
    let page = |length: usize| format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n<!DOCTYPE html>");
    let cases = [
        ("http", page(3)),
        ("http", "no answer of HTTP\r\n\r\n".to_owned()),
        ("http", format!("HTTP/1.1 200 OK\r\nX: {}\r\nContent-Length: 0\r\n\r\n", "x".repeat(1 << 20))),
        ("endless", "HTTP/1.1 100 Continue\r\n\r\n".repeat(1 << 20)),
        ("timeout", page(30_000)),
        ("status 302", "HTTP/1.1 302 Found\r\nLocation: /tag?name=tag7\r\nContent-Length: 0\r\n\r\n".to_owned()),
    ];
    for (kind, answer) in cases {
        // A machine that is busy is no server that is silent.
        let timeout = if kind == "timeout" { SECOND / 2 } else { 10 * SECOND };
        let result = wrong(timeout, move |_, request| {
            (request.path.starts_with("/tag") && request.path.ends_with('7'))
                .then(|| (answer.clone().into_bytes(), true))
        });
        assert_fault(&result, kind);
    }
}

#[test]
fn an_instance_that_falls_silent_has_failed_at_what_was_under_way_and_at_what_became_due_behind_it() {
    let servers = [1, 2].map(|instance| {
        let counter = AtomicU64::new(0);
        serve(app(instance), move |_| {
            while instance == 2 && counter.fetch_add(1, Ordering::Relaxed) > 500 {
                thread::sleep(Duration::from_secs(600));
            }
            None
        })
    });
    let drive = SocialDrive { timeout_ns: 600 * SECOND, ..drive(3) };
    let result = run(&spec(drive, &servers, closed(6), steady(1_500))).unwrap();
    let social = done(&result);
    let [well, silent] = social.instances.as_slice() else { panic!("{social:?}") };
    let failed = |one: &InstanceDone| one.operations.iter().map(|kind| kind.failed).sum::<u64>();
    let wrong = |one: &InstanceDone| one.operations.iter().map(|kind| kind.validation_errors).sum::<u64>();
    assert_eq!((silent.users, failed(silent)), (3, 6), "two of each user");
    // They had no answer, which is not what a slow one is.
    assert_eq!(
        (wrong(well), wrong(silent), done(&result).faults.as_slice()),
        (0, 6, &[("unfinished".to_owned(), 6)][..])
    );
    assert_eq!(result.errors, [(CUT_OFF.to_owned(), 3)]);
    assert!(well.operations.iter().map(|kind| kind.good).sum::<u64>() > 100, "{well:?}");
    // All six have waited for longer than the others' operations last.
    assert!(result.response.given_up >= 6 && result.response.waited_ns >= 30 * SECOND, "{:?}", result.response);
}

#[test]
fn what_became_due_while_its_user_waited_in_vain_is_timed_from_then_on() {
    let counter = AtomicU64::new(0);
    let result = wrong(SECOND / 4, move |_, request| {
        let nth = counter.fetch_add(1, Ordering::Relaxed);
        (nth > 50 && request.path.starts_with("/tag") && request.path.ends_with('3')).then(|| {
            thread::sleep(Duration::from_millis(500));
            (status("200 OK"), false)
        })
    });
    assert_fault(&result, "timeout");
    let silent = done(&result).faults[0].1;
    let slow: u64 = result.response.bins.iter().filter(|bin| bin.low > SECOND / 8).map(|bin| bin.count).sum();
    let late = slow + result.response.given_up;
    // One that timed out, and the one that became due a few milliseconds after it had begun.
    assert!(silent > 4 && 2 * late >= 3 * silent, "{late} took long, {silent} in vain");
}

#[test]
fn a_picture_of_another_event_is_reported() {
    let result = wrong(10 * SECOND, |app, request| {
        let other = request.path.strip_prefix("/image/event/")?.strip_suffix("t.jpg")?.parse::<u32>().ok()? % 100 + 1;
        let path = format!("/image/event/{other}t.jpg");
        let (method, head, body) = (request.method.clone(), String::new(), Vec::new());
        Some((app.answer(&Request { method, path, head, body }), true))
    });
    assert_fault(&result, "marker");
}

#[test]
fn silence_and_a_cut_body_fail_and_the_user_begins_anew() {
    let result = wrong(SECOND / 5, |_, request| {
        (request.path.starts_with("/tag") && request.path.ends_with('1')).then(|| {
            thread::sleep(Duration::from_millis(400));
            (status("200 OK"), false)
        })
    });
    assert_fault(&result, "timeout");
    assert!(done(&result).connections > 4);
    let result = wrong(10 * SECOND, |app, request| {
        let cut = || {
            let mut answer = app.answer(request);
            answer.truncate(answer.len() - 20);
            (answer, false)
        };
        request.path.starts_with("/tag").then(cut)
    });
    assert_fault(&result, "closed");
    assert!(done(&result).connections > 4);
}

#[test]
fn a_post_that_is_not_answered_is_in_doubt_and_one_that_is_refused_is_not() {
    // It is done, and the answer is lost; every other time it is refused.
    let turn = AtomicU64::new(0);
    let result = wrong(10 * SECOND, move |app, request| {
        if request.path != "/event" || request.method != "POST" {
            return None;
        }
        if turn.fetch_add(1, Ordering::Relaxed).is_multiple_of(2) {
            let _ = app.answer(request);
            return Some((Vec::new(), false));
        }
        Some((status("403 Forbidden"), true))
    });
    let one = &done(&result).instances[0];
    let count =
        |kind: &str| done(&result).faults.iter().find(|(known, _)| known == kind).map_or(0, |(_, count)| *count);
    assert!(count("closed") > 0, "{:?}", done(&result).faults);
    assert_eq!((one.added.events, one.in_doubt.events), (0, count("closed")));
    assert_eq!(one.in_doubt.people, 0);
}

#[test]
fn a_kept_connection_that_the_server_closed_is_opened_again_and_no_fault() {
    let counter = AtomicU64::new(0);
    let app = app(1);
    let inner = Arc::clone(&app);
    let server = serve(app, move |request| {
        // Every fortieth answer is the last of its connection, which does not say so.
        let last = counter.fetch_add(1, Ordering::Relaxed) % 40 == 39;
        (last && request.method == "GET").then(|| (inner.answer(request), false))
    });
    let result = run(&spec(SocialDrive { attend: 0.0, ..drive(4) }, &[server], closed(4), steady(800))).unwrap();
    // A form that was on its way when the connection ended cannot be said again, for it may have been understood.
    assert!(kinds(&result).iter().all(|kind| *kind == "closed"), "{:?}", kinds(&result));
    let lost: u64 = done(&result).faults.iter().map(|(_, count)| count).sum();
    assert!(done(&result).connections > 10 && lost < done(&result).connections / 4, "{:?}", done(&result));
}

#[test]
fn what_cannot_be_driven_is_refused_in_words() {
    let server = serve(app(1), |_| None);
    let refused = |drive: SocialDrive, load| run(&spec(drive, &[server], load, steady(100))).unwrap_err().to_string();
    assert!(refused(drive(5), open(10.0, Arrivals::Uniform, 4)).contains("use a closed loop"));
    assert!(refused(drive(5), closed(26)).contains("2600 people"), "{}", refused(drive(5), closed(26)));
    assert!(refused(SocialDrive { threads: 0, ..drive(5) }, closed(2)).contains("threads"));
    assert!(refused(SocialDrive { timeout_ns: 0, ..drive(5) }, closed(2)).contains("timeout_ns"));
    assert!(refused(SocialDrive { attend: f64::NAN, ..drive(5) }, closed(2)).contains("attend"));
    let many = run(&spec(drive(5), &[server; 1_001], closed(2), steady(100))).unwrap_err().to_string();
    assert!(many.contains("at most 1000 targets"), "{many}");
    let nobody = run(&spec(drive(5), &["127.0.0.1:1".parse().unwrap()], closed(2), steady(100)));
    assert!(matches!(nobody, Err(DriverError::Connect { .. })), "{nobody:?}");
}

#[test]
fn it_can_be_cancelled() {
    let server = serve(app(1), |_| None);
    let cancel = AtomicBool::new(false);
    let began = Instant::now();
    let spec = spec(drive(5), &[server], closed(4), steady(600_000));
    let result = driver::run(&spec, &|_| cancel.store(true, Ordering::Relaxed), &cancel);
    assert!(matches!(result, Err(DriverError::Cancelled)), "{result:?}");
    assert!(began.elapsed() < Duration::from_secs(60), "long before its end");
}
