//! The governor on a tree that looks like the kernel's: what it notes, sets and puts back, and how it fails.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::common::{Kept, Tree, no_guests};
use tare_lab::{Ledger, Resource};
use tare_memory::rules::Set;
use tare_memory::{Governor, Guests, MemoryError};
use tare_model::merging::{HostMemory, HugePages, MergeRule, Merging};
use tare_model::units::Span;

const TARE: MergeRule = MergeRule::Tare { free_goal: 0.2, max_cpu: 0.7 };
const ADVISOR: MergeRule = MergeRule::Advisor { target_scan_time: Span::from_secs(20), max_cpu: 50 };

fn merging(rule: MergeRule) -> HostMemory {
    HostMemory {
        merging: Some(Merging { rule, zero_pages: true }),
        huge_pages: Some(HugePages::Never),
        ..HostMemory::default()
    }
}

fn start(tree: &Tree, wanted: &HostMemory, stop: bool, kept: &Arc<Kept>) -> Result<Governor, MemoryError> {
    let ledger: Arc<dyn Ledger> = Arc::<Kept>::clone(kept);
    Governor::start(tree.kernel(), wanted, stop, no_guests(), &ledger)
}

fn wait_for(what: impl Fn() -> bool) -> bool {
    let started = Instant::now();
    while started.elapsed() < Duration::from_secs(20) {
        if what() {
            return true;
        }
        sleep(Duration::from_millis(20));
    }
    false
}

/// The names of what was noted, and the values.
fn noted(tree: &Tree, kept: &Kept) -> Vec<(String, String)> {
    let planned = kept.planned.lock().unwrap();
    let [Resource::Settings { found }] = planned.as_slice() else { panic!("{planned:?}") };
    let root = tree.path("");
    let name = |path: &PathBuf| path.strip_prefix(&root).unwrap().display().to_string();
    found.iter().map(|(path, value)| (name(path), value.clone())).collect()
}

fn pairs(all: &[(&str, &str)]) -> Vec<(String, String)> {
    all.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect()
}

#[test]
fn every_rule_is_set_and_all_is_put_back_as_it_was() {
    let fixed = MergeRule::Fixed { pages_to_scan: 8000, sleep: Span::from_millis(10) };
    for rule in [fixed, MergeRule::PublishedScript, MergeRule::Ksmtuned, ADVISOR, TARE] {
        let tree = Tree::new();
        let before = tree.all();
        let kept = Arc::new(Kept::default());
        let governor = start(&tree, &merging(rule), true, &kept).unwrap();
        assert_eq!(tree.held("use_zero_pages"), "1", "{rule:?}");
        assert_eq!(fs::read_to_string(tree.path("transparent_hugepage/enabled")).unwrap(), "never");
        let script = matches!(rule, MergeRule::PublishedScript | MergeRule::Ksmtuned);
        assert_eq!(tree.held("run"), if script { "0" } else { "1" }, "{rule:?}");
        match rule {
            MergeRule::Fixed { .. } => {
                assert_eq!((tree.held("pages_to_scan"), tree.held("sleep_millisecs")), ("8000".into(), "10".into()));
            }
            MergeRule::Advisor { .. } => {
                let held = ["advisor_mode", "advisor_target_scan_time", "advisor_max_cpu"].map(|name| tree.held(name));
                assert_eq!(held, ["scan-time", "20", "50"]);
            }
            _ => {}
        }
        assert_eq!(governor.decisions().len(), 1);
        assert!(!governor.settled(), "{rule:?}");
        governor.end().unwrap();
        // The kernel shows its choices in brackets, a tree keeps the word.
        let plain = |all: Vec<(&str, String)>| -> Vec<String> {
            all.into_iter().map(|(_, held)| tare_lab::chosen_word(&held).unwrap_or(&held).to_owned()).collect()
        };
        assert_eq!(plain(tree.all()), plain(before), "{rule:?}");
        assert_eq!((kept.planned.lock().unwrap().len(), kept.released.lock().unwrap().clone()), (1, vec![1]));
    }
}

#[test]
fn only_what_is_touched_is_noted_in_the_order_in_which_it_can_be_put_back() {
    let (tree, kept) = (Tree::new(), Arc::new(Kept::default()));
    start(&tree, &HostMemory { huge_pages: None, ..merging(TARE) }, false, &kept).unwrap().end().unwrap();
    let off = [
        ("ksm/advisor_mode", "none"),
        ("ksm/pages_to_scan", "100"),
        ("ksm/sleep_millisecs", "20"),
        ("ksm/use_zero_pages", "0"),
        ("ksm/run", "0"),
    ];
    assert_eq!(noted(&tree, &kept), pairs(&off));

    // With the advisor on, the pages are its own, and its goals come before it.
    let (tree, kept) = (Tree::new(), Arc::new(Kept::default()));
    tree.set("advisor_mode", "none [scan-time]");
    tree.set("run", "1");
    start(&tree, &merging(ADVISOR), false, &kept).unwrap().end().unwrap();
    let on = [
        ("ksm/sleep_millisecs", "20"),
        ("ksm/use_zero_pages", "0"),
        ("ksm/advisor_target_scan_time", "200"),
        ("ksm/advisor_max_cpu", "70"),
        ("ksm/advisor_mode", "scan-time"),
        ("transparent_hugepage/enabled", "madvise"),
        ("ksm/run", "1"),
    ];
    assert_eq!(noted(&tree, &kept), pairs(&on));

    let (tree, kept) = (Tree::new(), Arc::new(Kept::default()));
    start(&tree, &HostMemory::default(), true, &kept).unwrap().end().unwrap();
    assert_eq!(noted(&tree, &kept), pairs(&[("ksm/run", "0")]));

    let (tree, kept) = (Tree::new(), Arc::new(Kept::default()));
    let governor = start(&tree, &HostMemory::default(), false, &kept).unwrap();
    assert!(governor.settled() && kept.planned.lock().unwrap().is_empty(), "nothing is asked, nothing is done");
}

#[test]
fn an_arm_without_merging_takes_apart_what_was_merged_before() {
    let (tree, kept) = (Tree::new(), Arc::new(Kept::default()));
    tree.set("run", "1");
    tree.set("pages_sharing", "1000");
    let governor = start(&tree, &HostMemory::default(), true, &kept).unwrap();
    assert_eq!(tree.held("run"), "0");
    assert!(governor.settled() && governor.decisions().is_empty());
    drop(governor);
    assert_eq!(tree.held("run"), "1", "put back on drop");
    // 2 GiB are available: 1.5 GiB merged might not fit.
    tree.set("pages_sharing", "393216");
    let why = start(&tree, &HostMemory::default(), true, &kept).unwrap_err().to_string();
    assert!(why.contains("1610612736 bytes of other processes are merged"), "{why}");
    assert_eq!(tree.held("run"), "1");
    // Those that had merged them are gone, and the kernel, stopped, has not noticed.
    fs::create_dir(tree.root().join("proc/99")).unwrap();
    let counted = |pages: u64| format!("ksm_rmap_items 9\nksm_zero_pages 1\nksm_merging_pages {pages}\n");
    fs::write(tree.root().join("proc/99/ksm_stat"), counted(262_144)).unwrap();
    let why = start(&tree, &HostMemory::default(), true, &kept).unwrap_err().to_string();
    assert!(why.contains("1073745920 bytes of other processes are merged"), "{why}");
    fs::write(tree.root().join("proc/99/ksm_stat"), counted(1000)).unwrap();
    let governor = start(&tree, &HostMemory::default(), true, &kept).unwrap();
    assert_eq!(tree.held("run"), "0");
    governor.end().unwrap();
}

#[test]
fn what_the_kernel_does_not_have_is_reported_before_anything_is_changed() {
    let error_without = |remove: &str, rule: MergeRule| {
        let (tree, kept) = (Tree::new(), Arc::new(Kept::default()));
        tree.remove(remove);
        let before = tree.all();
        let why = start(&tree, &merging(rule), false, &kept).unwrap_err().to_string();
        assert_eq!(tree.all(), before);
        assert!(kept.planned.lock().unwrap().is_empty());
        why
    };
    assert!(error_without("advisor_mode", ADVISOR).contains("this kernel has no advisor. Linux 6.8 or newer"));
    assert!(error_without("use_zero_pages", TARE).contains("no use_zero_pages. Set `zero-pages = false`"));
    assert!(error_without("run", TARE).contains("this kernel was built without KSM"));
    // A kernel of 5.10 has less, and merges all the same.
    let (tree, kept) = (Tree::new(), Arc::new(Kept::default()));
    for name in [
        "advisor_mode",
        "use_zero_pages",
        "smart_scan",
        "ksm_zero_pages",
        "pages_scanned",
        "pages_skipped",
        "general_profit",
    ] {
        tree.remove(name);
    }
    let wanted = HostMemory { merging: Some(Merging { rule: TARE, zero_pages: false }), ..HostMemory::default() };
    let governor = start(&tree, &wanted, false, &kept).unwrap();
    assert_eq!((tree.held("run"), governor.counters().unwrap().zero_pages), ("1".into(), 0));
    let settings = tree.kernel().settings().unwrap();
    assert_eq!((settings.use_zero_pages, settings.smart_scan, settings.advisor), (None, None, None));
}

#[test]
fn what_fails_half_way_is_put_back() {
    let (tree, kept) = (Tree::new(), Arc::new(Kept::default()));
    // Read only after huge pages and zero pages were set.
    fs::remove_file(tree.root().join("proc/meminfo")).unwrap();
    let why = start(&tree, &merging(TARE), false, &kept).unwrap_err().to_string();
    assert!(why.contains("proc/meminfo"), "{why}");
    assert_eq!(tree.held("use_zero_pages"), "0");
    assert_eq!(fs::read_to_string(tree.path("transparent_hugepage/enabled")).unwrap(), "madvise");
    assert_eq!(*kept.released.lock().unwrap(), [1]);

    let (tree, kept) = (Tree::new(), Arc::new(Kept { refuses: true, ..Kept::default() }));
    let before = tree.all();
    start(&tree, &merging(TARE), false, &kept).unwrap_err();
    assert_eq!(tree.all(), before, "what is not in the ledger is not changed");
}

#[test]
fn what_cannot_be_put_back_is_named_and_stays_in_the_ledger() {
    let (tree, kept) = (Tree::new(), Arc::new(Kept::default()));
    let governor = start(&tree, &merging(TARE), false, &kept).unwrap();
    tree.remove("sleep_millisecs");
    let why = governor.end().unwrap_err().to_string();
    assert!(why.contains("ksm/sleep_millisecs is to hold 20"), "{why}");
    assert_eq!(tree.held("run"), "0", "the others are back");
    assert!(kept.released.lock().unwrap().is_empty());
}

#[test]
fn tares_rule_decides_again_and_settles_after_two_passes() {
    let (tree, kept) = (Tree::new(), Arc::new(Kept::default()));
    let governor = start(&tree, &merging(TARE), false, &kept).unwrap();
    assert!(!governor.settled());
    tree.set("pages_sharing", "50000");
    tree.set("full_scans", "1");
    assert!(!governor.settled());
    tree.set("full_scans", "4");
    assert!(governor.settled());
    let rests = |set: &Set| matches!(set, Set::Scan { sleep_ms: 200, .. });
    assert!(
        wait_for(|| governor.decisions().last().is_some_and(|last| rests(&last.set))),
        "{:?}",
        governor.decisions()
    );
    assert!(governor.settled());
    governor.end().unwrap();
}

#[test]
fn a_rule_that_cannot_be_carried_out_is_reported_at_the_end() {
    let (tree, kept) = (Tree::new(), Arc::new(Kept::default()));
    let governor = start(&tree, &merging(TARE), false, &kept).unwrap();
    tree.set("pages_sharing", "many");
    assert!(!governor.settled());
    let why = governor.end().unwrap_err().to_string();
    assert!(why.contains("pages_sharing: it holds `many`, expected a number"), "{why}");
    assert_eq!((tree.held("run"), kept.released.lock().unwrap().len()), ("0".into(), 1), "all is back nevertheless");
}

#[test]
fn a_thread_that_panics_is_reported_at_the_end_and_all_is_back() {
    let (tree, kept) = (Tree::new(), Arc::new(Kept::default()));
    let ledger: Arc<dyn Ledger> = Arc::<Kept>::clone(&kept);
    let asked = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&asked);
    // The first time is at the start.
    let guests = Arc::new(move || match counted.fetch_add(1, Ordering::SeqCst) {
        0 => Guests::default(),
        _ => panic!("meant to be: whoever knows the guests panics"),
    });
    let governor = Governor::start(tree.kernel(), &merging(TARE), false, guests, &ledger).unwrap();
    assert!(wait_for(|| asked.load(Ordering::SeqCst) > 1));
    let why = governor.end().unwrap_err().to_string();
    assert!(why.contains("its thread panicked"), "{why}");
    assert_eq!((tree.held("run"), kept.released.lock().unwrap().len()), ("0".into(), 1));
}

#[test]
fn the_scanner_is_the_kernels_thread_and_not_a_program_by_its_name() {
    let tree = Tree::new();
    assert_eq!(tree.kernel().refusal(), None);
    let ticks = 250.0 / rustix::param::clock_ticks_per_second() as f64;
    assert!((tree.kernel().counters().unwrap().scanner_cpu_s - ticks).abs() < 1e-9);
    fs::write(tree.root().join("proc/37/schedstat"), "5679809 166318567 574\n").unwrap();
    assert!((tree.kernel().counters().unwrap().scanner_cpu_s - 0.005_679_809).abs() < 1e-12);
    assert_eq!(tree.kernel().counters().unwrap().profit_bytes, -64);
    fs::remove_dir_all(tree.root().join("proc/37")).unwrap();
    assert!(tree.kernel().refusal().unwrap().reason.contains("thread ksmd"));
}
