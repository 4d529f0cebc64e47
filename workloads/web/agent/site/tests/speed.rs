//! What a request costs here: prints nanoseconds of this machine, in a release build worth reading.
use std::hint::black_box;
use std::time::Instant;

use super::*;
use crate::session::engine::Ended;

const REQUESTS: u32 = 400_000;

fn report(what: &str, work: impl FnOnce()) {
    let began = Instant::now();
    work();
    println!("{what:32} {:7.1} ns", began.elapsed().as_nanos() as f64 / f64::from(REQUESTS));
}

#[test]
#[ignore = "measures; run with --release -- --ignored --nocapture"]
fn cost_of_a_request() {
    let site = Site::compile(&drive(all_kinds())).unwrap();
    let mut tokens = Tokens::new(1, 0);
    let mut out = Vec::with_capacity(1_024);
    let mut user = user_in(&site, 1);
    report("ask for a page, with its proof", || {
        for _ in 0..REQUESTS {
            out.clear();
            black_box(user.ask(&site, b"0123456789abcdef0123456789abcdef", &mut tokens, &mut out));
        }
    });
    let mut user = user_in(&site, 0);
    report("ask for a file", || {
        for _ in 0..REQUESTS {
            out.clear();
            black_box(user.ask_embedded(&site, 0, &mut out));
        }
    });
    let mut user = user_in(&site, 5);
    report("ask for a download", || {
        for _ in 0..REQUESTS {
            out.clear();
            black_box(user.ask(&site, b"", &mut tokens, &mut out));
        }
    });
    let mut sessions = 0;
    report("go on to the next state, and think", || {
        let mut user = User::fresh(&site, 1, 0);
        for _ in 0..REQUESTS {
            if user.next(&site) == Next::End {
                sessions += 1;
                user = User::fresh(&site, 1, sessions);
            }
            black_box(user.think_ns(&site));
        }
    });
    let body = answers::content(answers::PATH, 9_000);
    let asked = user_in(&site, 0).ask_embedded(&site, 0, &mut Vec::new());
    report("check a file of 9000 bytes", || {
        for _ in 0..REQUESTS {
            let mut asked = asked;
            asked.feed(&site, black_box(&body)).unwrap();
            black_box(asked.finish(&site)).unwrap();
        }
    });
    let (site, asked, body) = answers::page_and_answer();
    report("check a page", || {
        for _ in 0..REQUESTS {
            let mut asked = asked;
            asked.feed(&site, black_box(&body)).unwrap();
            black_box(asked.finish(&site)).unwrap();
        }
    });
    let mut tally = Tally::new(&site);
    report("count", || {
        for n in 0..u64::from(REQUESTS) {
            tally.record(&site, 0, &Ended { response_ns: n * 1_000, bytes: 30_000, fault: None, cut: false }, true);
        }
    });
    assert_eq!(Tally::merge(&site, vec![tally]).0[0].requests, u64::from(REQUESTS));
}
