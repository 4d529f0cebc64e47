//! Orders, costs, hashes and refusals.

use std::collections::{BTreeMap, BTreeSet};

use tare_model::layout::ServicePlace;
use tare_model::study::Guests;
use tare_model::units::{ByteSize, Span};

use super::{ALL_GOOD, good, roomy, study_of};
use crate::testing::Fake;
use crate::{HostFacts, PlanRefusal, human, plan};

#[test]
fn each_block_runs_every_arm_of_every_case_once_and_arms_of_a_case_are_neighbours() {
    let (study, plan) = (good(), plan(&good(), &roomy(), &Fake).unwrap());
    let (cases, arms) = (study.cases.len(), study.arms.len());
    assert_eq!(plan.trials.len(), study.blocks as usize * cases * arms);
    for (block, trials) in plan.trials.chunks(cases * arms).enumerate() {
        let distinct: BTreeSet<_> = trials.iter().map(|trial| (&trial.case, &trial.arm)).collect();
        assert_eq!(distinct.len(), cases * arms);
        assert!(trials.iter().all(|trial| trial.block as usize == block + 1));
        for pair in trials.chunks(arms) {
            assert!(pair.iter().all(|trial| trial.case == pair[0].case), "{pair:?}");
        }
    }
    assert!(plan.trials.iter().enumerate().all(|(position, trial)| trial.index as usize == position));
}

#[test]
fn over_many_blocks_every_arm_comes_first_about_equally_often() {
    let mut study = good();
    study.blocks = 1200;
    let plan = plan(&study, &roomy(), &Fake).unwrap();
    let mut first: BTreeMap<&str, u32> = BTreeMap::new();
    for pair in plan.trials.chunks(study.arms.len()) {
        *first.entry(&pair[0].arm).or_default() += 1;
    }
    // 6000 draws of 3: 2000 expected, standard deviation 36.5; five of them is once in a million seeds.
    assert!(first.values().all(|&n| n.abs_diff(2000) < 183), "{first:?}");
}

#[test]
fn blocks_by_precision_have_the_trials_of_the_most_and_the_time_of_both() {
    use tare_model::study::Precision;
    let text = super::GOOD.replacen("blocks = 3", "blocks = { at-least = 12, at-most = 60, until = \"2.5 %\" }", 1);
    let study = study_of(&text);
    assert_eq!((study.blocks, study.precision), (60, Some(Precision { at_least: 12, until: 0.025 })));
    let plan = plan(&study, &roomy(), &Fake).unwrap();
    assert_eq!(plan.trials.len(), 60 * study.cases.len() * study.arms.len());
    let text = human(&plan, &roomy());
    let trials = format!("at most {} = 12 to 60 blocks x ", plan.trials.len());
    for said in
        [&*trials, " of each case, until no interval reaches further than 2.5 % from its estimate", "12 to 60 blocks; "]
    {
        assert!(text.contains(said), "{said}: {text}");
    }
}

/// If this fails, the order of every study ever published has changed. Do not accept the new order.
#[test]
fn the_order_for_a_seed_is_pinned() {
    let mut study = good();
    study.blocks = 2;
    let plan = plan(&study, &roomy(), &Fake).unwrap();
    let order: Vec<String> = plan.trials.iter().map(|t| format!("{} {} {}", t.block, t.case, t.arm)).collect();
    insta::assert_snapshot!("order_for_seed_7", order.join("\n"));
}

#[test]
fn each_arm_precedes_each_other_one_in_half_of_the_blocks_of_every_case() {
    for seed in 0..20 {
        let mut study = good();
        (study.blocks, study.seed) = (6, seed);
        let plan = plan(&study, &roomy(), &Fake).unwrap();
        for (case, one, other) in study.cases.iter().flat_map(|case| {
            let pairs = study.arms.iter().flat_map(|one| study.arms.iter().map(move |other| (one, other)));
            pairs.filter(|(one, other)| one.id != other.id).map(move |(one, other)| (case, one, other))
        }) {
            let index = |block, arm: &str| {
                plan.trials.iter().find(|t| (t.block, &*t.case, &*t.arm) == (block, &*case.id, arm)).unwrap().index
            };
            let first = (1..=6).filter(|&block| index(block, &one.id) < index(block, &other.id)).count();
            assert_eq!(first, 3, "seed {seed}, {}: {} before {}", case.id, one.id, other.id);
        }
    }
}

#[test]
fn the_hash_is_the_studys_and_not_the_hosts() {
    let study = good();
    let here = plan(&study, &roomy(), &Fake).unwrap();
    let elsewhere = HostFacts { cpus: (0..32).collect(), ..roomy() };
    assert_eq!(here.hash, plan(&study, &elsewhere, &Fake).unwrap().hash);
    assert_eq!(here.hash.len(), 64);
    let mut hashes = BTreeSet::from([here.hash]);
    let mut other = good();
    other.seed = 8;
    assert!(hashes.insert(plan(&other, &roomy(), &Fake).unwrap().hash), "the seed");
    other = good();
    other.cases[0].phases.steady_state = Span::from_secs(3);
    assert!(hashes.insert(plan(&other, &roomy(), &Fake).unwrap().hash), "a phase");
    other = good();
    other.arms[1].options["runtime"] = "crun".into();
    assert!(hashes.insert(plan(&other, &roomy(), &Fake).unwrap().hash), "an option");
}

#[test]
fn costs_add_up() {
    let mut study = good();
    study.cases.truncate(2);
    let cost = plan(&study, &roomy(), &Fake).unwrap().cost;
    // Two cases of 2.45 s and 5.45 s, in 123 and 273 rounds of turns of 20 ms and 1 ms between two, on three arms in three blocks.
    assert_eq!(cost.measuring, Span::from_millis((123 + 273) * 21 * 9));
    // A trial: 100 ms and its start, of 10 ms natively and 40 ms with runc; the second case has six neighbours besides, natively.
    let starts = (10 + 40 + 10) * 2 + 6 * 10;
    assert_eq!(cost.around, Span::from_millis((6 * 100 + starts) * 3));
    assert_eq!(cost.memory, ByteSize((3 * 256 + 6 * 64) << 20));
}

#[test]
fn of_very_many_trials_the_first_are_listed_and_the_rest_counted() {
    let mut study = good();
    study.blocks = 40;
    let planned = plan(&study, &roomy(), &Fake).unwrap();
    let text = human(&planned, &roomy());
    let listed = text.lines().skip_while(|line| !line.trim_start().starts_with("trial ")).skip(1);
    assert_eq!(listed.filter(|line| line.trim_start().starts_with(|c: char| c.is_ascii_digit())).count(), 60);
    let more = format!(
        "and {} more, all of them in `tare plan --format json`",
        planned.steps().iter().skip(60).map(|step| step.len()).sum::<usize>()
    );
    assert!(text.ends_with(&format!("{more}\n")), "{text}");
}

#[test]
fn what_does_not_fit_is_refused_with_figures_and_a_remedy_all_at_once() {
    let small = HostFacts {
        cpus: vec![0, 1],
        shared_cores: Vec::new(),
        memory_available: ByteSize(512 << 20),
        disk_free: ByteSize(1 << 20),
        ..HostFacts::default()
    };
    let error = plan(&good(), &small, &Fake).unwrap_err();
    assert_eq!(error.refusals.len(), 3, "{error}");
    insta::assert_snapshot!("refusal", error.to_string());
}

#[test]
fn a_plan_beyond_a_million_trials_is_refused_before_it_is_made() {
    let mut study = good();
    study.blocks = u32::MAX;
    let error = plan(&study, &roomy(), &Fake).unwrap_err();
    assert!(matches!(error.refusals[..], [PlanRefusal::Trials { .. }]), "{error}");
}

#[test]
fn guests_that_ask_more_cpus_than_there_are_is_a_deviation_for_each_number_asked() {
    let mut study = good();
    study.lab.placement = tare_model::study::Placement::Separate;
    let two = HostFacts { cpus: vec![0, 1], ..roomy() };
    let deviations = plan(&study, &two, &Fake).unwrap().differences;
    assert_eq!(
        deviations,
        [
            "in `busy@low`, `busy@high` the measured guest asks 2 CPUs, and this host has 1 for guests: every arm gets the same 1",
            "in `busy@low`, `busy@high` each neighbour asks 4 CPUs, and this host has 1 for guests: every arm gets the same 1",
        ]
    );
    assert_eq!(plan(&study, &roomy(), &Fake).unwrap().differences, Vec::<String>::new());
}

#[test]
fn a_plan_is_readable() {
    let mut study = crate::scale(good(), 0.5).unwrap();
    study.blocks = 1;
    study.cases.truncate(2);
    study.lab.placement = tare_model::study::Placement::Separate;
    let two = HostFacts { cpus: vec![0, 1], ..roomy() };
    insta::assert_snapshot!("human", human(&plan(&study, &two, &Fake).unwrap(), &two));
}

#[test]
fn whether_arms_may_be_left_out_is_part_of_the_hash() {
    let mut study = good();
    assert!(study.skip_unavailable);
    let asked = plan(&study, &roomy(), &Fake).unwrap();
    study.skip_unavailable = false;
    let plain = plan(&study, &roomy(), &Fake).unwrap();
    assert_ne!(asked.hash, plain.hash);
}

#[test]
fn a_plan_survives_its_file() {
    for text in ALL_GOOD {
        let plan = plan(&study_of(text), &roomy(), &Fake).unwrap();
        let text = serde_json::to_string(&plan).unwrap();
        assert_eq!(serde_json::from_str::<tare_model::plan::Plan>(&text).unwrap(), plan);
    }
}

/// The good study with these arms and this host for load, on the fake platform whose guests are machines elsewhere.
fn elsewhere(arms: &str, drivers: &str) -> Result<crate::LoadedStudy, crate::StudyError> {
    let text = format!(
        "schema = 1\nname = \"far\"\nquestion = \"How far?\"\nbaseline = \"here\"\nblocks = 2\nnoise-floor = false\n{arms}\n\
         {drivers}\n[guest]\ncpus = 1000\nmemory = \"1TiB\"\n[phases]\nsteady-state = \"1s\"\n\
         [cases.idle]\nworkload = \"rr\"\n"
    );
    crate::parse("far.toml", &text, &Fake)
}

const FAR: &str = "[arms.here]\nplatform = \"far\"\noptions = { host = \"a\" }\n";

#[test]
fn machines_elsewhere_are_asked_for_nothing_of_this_host_and_the_plan_says_what_differs() {
    let study = elsewhere(
        FAR,
        "[hosts.b]\nfar = { host = \"b\" }\n[hosts.c]\nfar = { host = \"c\" }\n[roles]\ndrivers = [\"c\", \"b\"]",
    )
    .unwrap()
    .study;
    let ids: Vec<&str> = study.hosts.iter().map(|host| host.id.as_str()).collect();
    assert_eq!((ids, study.roles.drivers.as_slice()), (vec!["b", "c"], ["c".to_owned(), "b".to_owned()].as_slice()));
    assert_eq!(study.hosts[0].options, serde_json::json!({ "host": "b" }));
    let plan = plan(&study, &roomy(), &Fake).unwrap();
    assert_eq!(plan.differences.len(), 3, "{:?}", plan.differences);
    assert!(
        plan.differences[0].starts_with("`here` is not made by tare") && plan.differences[1].contains("from `c`, `b`")
    );
}

#[test]
fn arms_on_two_networks_are_planned_with_that_said() {
    let arms = FAR.to_owned() + "[arms.native]\nplatform = \"native\"\n";
    let mut study = elsewhere(&arms, "").unwrap().study;
    study.cases[0].guest.memory = ByteSize(64 << 20);
    let plan = plan(&study, &roomy(), &Fake).unwrap();
    let said = plan.differences.iter().any(|said| said.contains("one of these networks") && said.contains("`native`"));
    assert!(said, "{:?}", plan.differences);
}

/// A study of sites in guests on a wire, with this role and what else there is.
fn served(services: &str, more: &str) -> Result<crate::LoadedStudy, crate::StudyError> {
    let text = format!(
        "schema = 1\nname = \"sites\"\nquestion = \"Which?\"\nbaseline = \"native\"\nblocks = 2\n\
         [arms.native]\nplatform = \"native\"\n[guest]\ncpus = 1\nmemory = \"64MiB\"\n[phases]\nsteady-state = \"1s\"\n\
         [lab]\nwire = {{ interface = \"e\", addresses = \"192.0.2.9-192.0.2.20/24\" }}\n\
         [hosts.back]\nfar = {{ host = \"b\", address = \"192.0.2.2\" }}\n[roles]\nservices = \"{services}\"\n{more}"
    );
    crate::parse("sites.toml", &text, &Fake)
}

#[test]
fn what_guests_ask_for_is_planned_on_the_host_that_the_study_names() {
    let site = "[cases.site]\nworkload = \"web-banking\"\n";
    let idle = "[cases.idle]\nworkload = \"rr\"\n";
    let planned = |cases: &str| {
        let study = served("back", cases).unwrap().study;
        assert_eq!((study.roles.services.as_deref(), study.roles.drives_locally()), (Some("back"), true));
        let plan = plan(&study, &roomy(), &Fake).unwrap();
        (plan.differences.join("\n"), plan.layout)
    };
    let (said, layout) = planned(&format!("{site}{idle}"));
    assert!(
        said.contains("(backend) is served from `back`") && said.contains("`idle` asks for nothing there"),
        "{said}"
    );
    let places = |case: &str| layout.works(case)[0].services.iter().map(|own| own.place).collect::<Vec<_>>();
    assert_eq!((places("site"), places("idle")), (vec![ServicePlace::ServicesHost], vec![]));
    let (said, _) = planned(site);
    assert!(said.contains("is served from `back`") && !said.contains("asks for nothing"), "{said}");
    let (said, _) = planned(idle);
    assert!(said.contains("`services` names `back`") && said.contains("nothing is served there"), "{said}");
    // A host without any role is still refused, and so is this host for machines elsewhere.
    let error = served("local", site).unwrap_err();
    assert_eq!(error.problems()[0].path, ["hosts", "back"]);
    let error = elsewhere(FAR, "[roles]\nservices = \"local\"").unwrap_err();
    let [problem] = error.problems() else { panic!("{error}") };
    assert!(problem.path == ["roles", "services"] && problem.message.contains("`here`"), "{problem:?}");
}

#[test]
fn neighbours_of_a_machine_elsewhere_are_refused_at_their_line() {
    let arms =
        FAR.to_owned() + "[cases.busy]\nworkload = \"rr\"\nneighbours = { count = 1, cpus = 1, memory = \"64MiB\" }\n";
    let error = elsewhere(&arms, "").unwrap_err();
    let [problem] = error.problems() else { panic!("{error}") };
    assert_eq!(problem.path, ["cases", "busy", "neighbours"]);
    assert!(problem.message.contains("`here`"), "{}", problem.message);
    let arms = FAR.to_owned() + "[cases.two]\nworkload = \"store\"\nguests = 2\n";
    let error = elsewhere(&arms, "").unwrap_err();
    let [problem] = error.problems() else { panic!("{error}") };
    assert_eq!(problem.path, ["cases", "two", "guests"]);
}

/// A study of stores in 4 guests with 2 drivers each, on arms that are made here; each store keeps 10 MB and gives each
/// guest 20 MB.
fn stores(cases: &str) -> tare_model::study::Study {
    let text = format!(
        "schema = 1\nname = \"stores\"\nquestion = \"How many?\"\nbaseline = \"native\"\nblocks = 2\n\
         [arms.native]\nplatform = \"native\"\n[guest]\ncpus = 3\nmemory = \"1GiB\"\n[phases]\nsteady-state = \"1s\"\n{cases}"
    );
    study_of(&text)
}

const FOUR: &str = "[cases.orders]\nworkload = \"store\"\nguests = 4\ndrivers = 2\n\
                    neighbours = { count = 1, cpus = 1, memory = \"64MiB\" }\n";

#[test]
fn several_measured_guests_are_promised_counted_and_reported() {
    let (one, four) = (stores(&FOUR.replace("guests = 4", "guests = 1")), stores(FOUR));
    assert_eq!(four.cases[0].load.guests(), Guests { count: 4, drivers: 2 });
    let (one, four) = (plan(&one, &roomy(), &Fake).unwrap(), plan(&four, &roomy(), &Fake).unwrap());
    assert_eq!(four.cost.memory, ByteSize(2 * 4 * (1 << 30) + (64 << 20)));
    // 10 ms for each of three more guests, on two arms in two blocks.
    assert_eq!(four.cost.around.ns - one.cost.around.ns, 3 * 4 * 10_000_000);
    assert!(four.cost.disk.0 >= one.cost.disk.0 + 2 * 60_000_000, "{} {}", one.cost.disk, four.cost.disk);
    assert_eq!(one.differences, Vec::<String>::new());
    let expected = "in `orders` the 4 measured guests ask 12 CPUs, 3 each, and this host has 6 for guests: every arm gets the same 6";
    assert_eq!(four.differences, [expected]);
    let shown = human(&four, &roomy());
    assert!(shown.contains("  guests    `orders` measures 4 guests at one time, 2 drivers each\n"), "{shown}");
    assert!(!human(&plan(&good(), &roomy(), &Fake).unwrap(), &roomy()).contains("at one time, 1 driver"));
}

#[test]
fn memory_that_several_guests_do_not_have_is_refused_with_how_it_adds_up() {
    let small = HostFacts { memory_available: ByteSize(2 << 30), ..roomy() };
    let refused = plan(&stores(FOUR), &small, &Fake).unwrap_err().to_string();
    assert!(refused.contains("(1GiB for each of 4 measured guests and 64MiB for each of 1 neighbours)"), "{refused}");
}

#[test]
fn data_that_do_not_fit_are_refused_by_file_system_with_what_needs_them() {
    use crate::FileSystem;
    let study = stores(FOUR);
    let disk =
        |device, path: &str, free: u64| Some(FileSystem { device, path: path.into(), free: ByteSize(free << 20) });
    let refused = |host: HostFacts| plan(&study, &host, &Fake).err().map(|error| error.to_string()).unwrap_or_default();
    // All on one file system: 9.5 MiB kept and 4 x 19.1 MiB beside the run's own.
    let one = |free: u64| refused(HostFacts { disk_free: ByteSize(free << 20), ..roomy() });
    let message = one(100);
    assert!(
        message.contains("what `store` of case `orders` keeps in the cache (9.5 MiB)")
            && message.contains("100.0 MiB is free")
    );
    assert!(message.contains("the data of the guests of case `orders` (4 x 19.1 MiB)"), "{message}");
    assert_eq!(one(1000), "");
    // What several cases of a workload keep is one figure.
    let mut two = study.clone();
    let mut more = two.cases[0].clone();
    more.id = "larger".to_owned();
    more.parameters["db-size"] = "20MB".into();
    two.cases.push(more);
    let message = plan(&two, &HostFacts { disk_free: ByteSize(100 << 20), ..roomy() }, &Fake).unwrap_err().to_string();
    assert!(message.contains("what `store` of case `orders` and 1 more keeps in the cache (28.6 MiB)"), "{message}");
    // What is kept already need not be made again, and cases that keep the same do so once.
    let there = |kept| refused(HostFacts { disk_free: ByteSize(100 << 20), kept: ByteSize(kept), ..roomy() });
    assert!(!there(10_000_000).contains("in the cache") && there(9_000_000).contains("in the cache (976.6 KiB)"));
    // Each on a file system of its own.
    let apart = |cache, guests| {
        refused(HostFacts { cache: disk(7, "/cache", cache), guests: disk(8, "/guests", guests), ..roomy() })
    };
    assert_eq!(apart(10, 80), "");
    let (cache, guests) = (apart(9, 80), apart(10, 70));
    assert!(cache.contains("(in /cache), and 9.0 MiB is free") && !cache.contains("(in /guests)"), "{cache}");
    assert!(guests.contains("(in /guests), and 70.0 MiB is free") && !guests.contains("(in /cache)"), "{guests}");
    // On one that is not the run folder's, they add up.
    let both = refused(HostFacts { cache: disk(7, "/var", 80), guests: disk(7, "/var", 80), ..roomy() });
    assert!(
        both.contains("need 86.0 MiB") && both.contains("(9.5 MiB) and ") && both.contains("(4 x 19.1 MiB) (in /var)"),
        "{both}"
    );
}
