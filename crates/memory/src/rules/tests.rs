//! The rules on courses that were reckoned by hand.
use std::time::Duration;

use tare_model::units::Span;

use super::*;

/// The published host: 24 GB, of which the kernel keeps a little. 30 % are 7,405,056 kB, 20 % are 4,936,704 kB.
const TOTAL: u64 = 24_683_520 << 10;
const GIB: u64 = 1 << 30;

fn seen(free_bytes: u64, virtual_bytes: u64, resident_bytes: u64) -> Seen {
    let memory = Memory { total_bytes: TOTAL, available_bytes: free_bytes, free_bytes };
    let guests = Guests { virtual_bytes, resident_bytes, ..Guests::default() };
    Seen { memory, guests, ..Seen::default() }
}

const fn scan(pages: u32, sleep_ms: u32) -> Set {
    Set::Scan { pages, sleep_ms }
}

#[test]
fn the_published_script_boosts_while_memory_is_short_and_decays_then() {
    let mut rule = Script::published();
    assert_eq!(rule.every(), Duration::from_secs(60));
    // It sleeps first. Then 10,000 us x 16 GiB / 24,683,520 kB = 6,796 us, in whole milliseconds 7.
    let (short, enough) = (seen(7 * GIB, 32 * GIB, 0), seen(8 * GIB, 32 * GIB, 0));
    assert_eq!(rule.begin(&short), Set::Stop);
    assert!(!rule.is_at_rest(), "it has not looked yet");
    let course: Vec<Set> = [short; 6].iter().map(|seen| rule.decide(seen)).collect();
    assert_eq!(course, [300, 600, 900, 1200, 1250, 1250].map(|pages| scan(pages, 7)));
    assert_eq!((rule.decide(&enough), rule.decide(&enough)), (scan(1200, 7), scan(1150, 7)));
}

#[test]
fn the_published_script_starts_low_and_stops_when_all_that_was_promised_fits() {
    let mut rule = Script::published();
    // Decay from nothing comes to the fewest.
    assert_eq!(rule.decide(&seen(20 * GIB, 17 * GIB, 0)), scan(64, 7));
    // 24,683,520 - 7,405,056 = 17,278,464 kB may be promised; the stop asks for less than that, however little is free.
    let most = 17_278_464 << 10;
    assert_eq!(rule.decide(&seen(0, most, 0)), scan(364, 7));
    assert_eq!(rule.decide(&seen(0, most - 1, 0)), Set::Stop);
    assert!(rule.is_at_rest());
    assert_eq!(rule.decide(&seen(0, most, 0)), scan(664, 7), "it goes on from where it was");
    assert!(!rule.is_at_rest());
}

#[test]
fn ksmtuned_goes_by_what_is_resident_and_stops_only_with_memory_free() {
    let mut rule = Script::ksmtuned();
    let limit = (24_683_520 - 4_936_704) << 10;
    let (free, short) = (5 * GIB, 4 * GIB);
    assert_eq!(rule.begin(&seen(short, 0, limit)), Set::Stop);
    assert!(!rule.is_at_rest());
    // Its pause would be 6.8 ms, and is 10 at least.
    assert_eq!(rule.decide(&seen(short, 0, 0)), scan(300, 10), "little resident, but little free as well");
    assert_eq!(rule.decide(&seen(free, 0, limit)), scan(250, 10));
    assert_eq!(rule.decide(&seen(free, 96 * GIB, limit - 1)), Set::Stop, "what is promised does not count");
    assert!(rule.is_at_rest());
}

#[test]
fn pauses_are_longer_on_smaller_hosts_and_never_none() {
    let of = |total_bytes: u64| {
        let memory = Memory { total_bytes, ..Memory::default() };
        let guests = Guests { virtual_bytes: 1 << 50, resident_bytes: 1 << 50, ..Guests::default() };
        let seen = Seen { memory, guests, ..Seen::default() };
        (Script::published().decide(&seen), Script::ksmtuned().decide(&seen))
    };
    assert_eq!(of(16 * GIB), (scan(300, 10), scan(300, 10)));
    assert_eq!(of(4 * GIB), (scan(300, 40), scan(300, 40)));
    assert_eq!(of(1024 * GIB), (scan(300, 1), scan(300, 10)));
}

#[test]
fn fixed_values_and_the_advisor_are_set_once() {
    let mut fixed = Fixed::new(8000, Span::from_millis(10));
    assert_eq!((fixed.every(), fixed.decide(&Seen::default())), (Duration::ZERO, scan(8000, 10)));
    let mut advisor = Advisor::new(Span::from_secs(200), 70);
    let advised = Set::Advise { target_scan_time_s: 200, max_cpu: 70, sleep_ms: 20 };
    assert_eq!((advisor.every(), advisor.begin(&Seen::default())), (Duration::ZERO, advised));
}
