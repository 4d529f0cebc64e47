//! The governor on this host: what it sets arrives, and all is as it was, also when the process that set it is gone.

use std::fs::File;
use std::sync::Arc;

use crate::common::{Kept, no_guests};
use tare_lab::{Ledger, Resource, reap};
use tare_memory::{Governor, Kernel};
use tare_model::merging::{HostMemory, HugePages, MergeRule, Merging};
use tare_model::units::Span;

/// The host's merging, held so that no other test changes it meanwhile; `None` where it cannot be governed.
fn host() -> Option<(Kernel, File)> {
    let kernel = Kernel::host();
    if let Some(refusal) = kernel.refusal().or_else(|| kernel.opening_refusal()) {
        println!("SKIPPED: memory cannot be merged here: {}", refusal.reason);
        return None;
    }
    let lock = File::create("/run/lock/tare-ksm-test.lock").unwrap();
    lock.lock().unwrap();
    Some((kernel, lock))
}

fn rules() -> [MergeRule; 3] {
    [
        MergeRule::Fixed { pages_to_scan: 123, sleep: Span::from_millis(11) },
        MergeRule::Advisor { target_scan_time: Span::from_secs(20), max_cpu: 50 },
        MergeRule::Tare { free_goal: 0.2, max_cpu: 0.3 },
    ]
}

fn start(kernel: &Kernel, rule: MergeRule, huge_pages: Option<HugePages>, kept: &Arc<Kept>) -> Governor {
    let wanted = HostMemory { merging: Some(Merging { rule, zero_pages: true }), huge_pages, ..HostMemory::default() };
    let ledger: Arc<dyn Ledger> = Arc::<Kept>::clone(kept);
    Governor::start(kernel.clone(), &wanted, false, no_guests(), &ledger).unwrap()
}

#[test]
fn settings_arrive_and_go() {
    let Some((kernel, _lock)) = host() else { return };
    if kernel.settings().unwrap().advisor.is_none() {
        println!("SKIPPED: this kernel has no advisor");
        return;
    }
    let found = kernel.settings().unwrap();
    for rule in rules() {
        let governor = start(&kernel, rule, Some(HugePages::Never), &Arc::default());
        let now = kernel.settings().unwrap();
        assert_eq!((now.run, now.use_zero_pages, now.huge_pages.as_deref()), (1, Some(true), Some("never")));
        match rule {
            MergeRule::Fixed { .. } => assert_eq!((now.pages_to_scan, now.sleep_ms), (123, 11)),
            MergeRule::Advisor { .. } => {
                let advisor = now.advisor.unwrap();
                assert_eq!((advisor.mode.as_str(), advisor.target_scan_time_s, advisor.max_cpu), ("scan-time", 20, 50));
            }
            _ => assert!(now.pages_to_scan > 100),
        }
        governor.end().unwrap();
        assert_eq!(kernel.settings().unwrap(), found, "{rule:?}");
    }
}

#[test]
fn what_a_dead_process_left_is_put_back_by_reaping() {
    let Some((kernel, _lock)) = host() else { return };
    let found = kernel.settings().unwrap();
    let rule = MergeRule::Fixed { pages_to_scan: 123, sleep: Span::from_millis(11) };
    let kept = Arc::new(Kept::default());
    // A process that was killed does nothing more. This rule decides nothing more, either.
    std::mem::forget(start(&kernel, rule, None, &kept));
    assert_ne!(kernel.settings().unwrap(), found);
    let resources: Vec<Resource> = kept.planned.lock().unwrap().clone();
    let run = format!("test-settings-{}", std::process::id());
    let report = reap(&run, &resources, &mut |_, _| Ok(()));
    assert!(report.is_clean(), "{report:?}");
    assert_eq!(report.removed, resources);
    assert_eq!(kernel.settings().unwrap(), found);
    // Once more, it has nothing to do.
    assert_eq!(reap(&run, &resources, &mut |_, _| Ok(())), tare_lab::ReapReport::default());
}
