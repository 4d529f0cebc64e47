//! Coordinated omission: a server that stalls for 1 s in 10, and users who come a thousand a second whatever it does. A tenth of
//! them come in the stall and wait for what is left of it, 0 to 1 s: the 99th percentile of all is 900 ms.

use crate::common::web as sites;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use crate::common::{open, phases, run};
use sites::*;
use tare_driver::clock::{now_ns, sleep_until};
use tare_driver::web::spec::{Body, WebDrive};
use tare_model::load::Arrivals;

const ATTEMPTS: u32 = 4;
const FILE: (&str, u64) = ("/files/shop/one.gif", 500);

/// One run; its 99th percentile, milliseconds, and the same of service times.
fn attempt() -> (f64, f64) {
    let first: Arc<Mutex<Option<u64>>> = Arc::default();
    let never = AtomicBool::new(false);
    let server = serve(move |_| {
        let began = *first.lock().unwrap().get_or_insert_with(now_ns);
        let (from, to) = (began + 45 * SECOND / 10, began + 55 * SECOND / 10);
        if (from..to).contains(&now_ns()) {
            sleep_until(to, &never);
        }
        (sized("200 OK", &file(FILE.0, FILE.1)), !never.load(Ordering::Relaxed))
    });
    let mut one = site(Body::File(fixed(FILE.0, FILE.1)), Vec::new());
    one.states[0].next = Vec::new();
    let mut drive = drive(one);
    drive.fresh_connections = false;
    let result = run(&spec(drive, &[server], open(1_000.0, Arrivals::Uniform, 8), phases(0, 0, 10_000, 0))).unwrap();
    let web = result.outcome::<WebDrive>().unwrap();
    assert_eq!((result.response.count(), result.unfinished, web.faults.len()), (10_000, 0, 0), "none is dropped");
    assert!(result.backlog_max > 900, "{} waited", result.backlog_max);
    (result.response.quantile(0.99).unwrap() / 1e6, result.service.quantile(0.99).unwrap() / 1e6)
}

#[test]
fn the_99th_percentile_of_a_server_that_stalls_for_a_second_in_ten_is_900_ms() {
    let mut seen = Vec::new();
    for _ in 0..ATTEMPTS {
        // The truth of 900 ms is that of a server which stalls for its second and for no other: a machine that keeps it or the driver from
        // running for 20 ms more moves it, so one attempt within the bound is enough. A driver that omits who waits is hundreds of
        // milliseconds off in every attempt; a bias of about the bound itself could pass by luck.
        let (response, service) = attempt();
        if (response / 900.0 - 1.0).abs() <= 0.02 {
            // Without the wait for a session, eight requests would have been slow and 992 unseen.
            assert!(service < 500.0, "{service} ms");
            return;
        }
        seen.push(response);
    }
    panic!("99th percentiles of {seen:?} ms in place of 900");
}
