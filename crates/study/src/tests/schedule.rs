//! Turns: how a study asks for them, where they are taken, and what is refused.

use tare_model::study::{CaseSchedule, Study};
use tare_model::turns::{TurnSpec, Waiting};
use tare_model::units::{BitRate, ByteSize, Span};

use super::{GOOD, Wrong, assert_each_is_refused, good, roomy, study_of};
use crate::testing::Fake;
use crate::{HostFacts, human, plan};

const fn ms(ms: u64) -> Span {
    Span::from_millis(ms)
}

/// A study of two arms and the baseline again, with these lines at its top, in `[phases]` and as cases.
fn text(top: &str, steady_state: &str, cases: &str) -> String {
    format!(
        "schema = 1\nname = \"turns\"\nquestion = \"Who is next?\"\nbaseline = \"native\"\nblocks = 3\n{top}\n\
         [arms.native]\nplatform = \"native\"\n[arms.container]\nplatform = \"container\"\n\
         [guest]\ncpus = 1\nmemory = \"1GiB\"\n[phases]\nsteady-state = \"{steady_state}\"\n{cases}"
    )
}

const IDLE: &str = "[cases.idle]\nworkload = \"rr\"\n";

fn turns(study: &Study, case: &str) -> TurnSpec {
    let case = study.cases.iter().find(|other| other.id == case).unwrap();
    *case.schedule.turns().unwrap_or_else(|| panic!("{:?}", case.schedule))
}

fn why(study: &Study, case: &str) -> String {
    match &study.cases.iter().find(|other| other.id == case).unwrap().schedule {
        CaseSchedule::Trials { why } | CaseSchedule::Pairs { why, .. } => why.clone(),
        other => panic!("{other:?}"),
    }
}

fn problem(text: &str) -> (String, String) {
    let error = crate::parse("turns.toml", text, &Fake).unwrap_err();
    let [problem] = error.problems() else { panic!("{}", error.render(false)) };
    (problem.path.join("."), format!("{} {}", problem.message, problem.help.as_deref().unwrap_or_default()))
}

#[test]
fn turns_are_taken_as_the_workload_says_unless_the_study_or_the_case_says_otherwise() {
    let study = study_of(&text("", "2s", IDLE));
    let own = TurnSpec { turn: ms(20), warm_up: Span::ZERO, gap: ms(1), waiting: Waiting::Idle, commands: None };
    assert_eq!(turns(&study, "idle"), own);
    let study = good();
    assert_eq!(turns(&study, "idle"), TurnSpec { warm_up: ms(2), ..own });
    assert_eq!(turns(&study, "bulk"), TurnSpec { turn: ms(50), gap: ms(2), ..own });
    assert_eq!(turns(&study, "busy@low"), TurnSpec { warm_up: ms(2), waiting: Waiting::Frozen, ..own });
    assert_eq!(why(&study, "floor"), "`null` is not driven in turns");
    // Guests that are busy by themselves are stopped without being asked to.
    let busy = study_of(&text("", "2s", &format!("{IDLE}busy-target = true\n")));
    assert_eq!(turns(&busy, "idle").waiting, Waiting::Frozen);
}

#[test]
fn a_command_is_a_turn_of_its_own_with_rounds_and_without_lengths() {
    const COMMAND: &str = "[cases.command]\nworkload = \"exec\"\n";
    let study = study_of(&text("", "20ms", COMMAND));
    let (turn, commands) = (Span::ZERO, Some(5));
    let own = TurnSpec { turn, warm_up: Span::ZERO, gap: ms(10), waiting: Waiting::Idle, commands };
    assert_eq!(turns(&study, "command"), own);
    let planned = plan(&study, &roomy(), &Fake).unwrap();
    assert_eq!(planned.cost.measuring, ms(3 * 5 * 3 * 30), "3 blocks, 5 rounds, 3 arms, 20 ms and a gap");
    let said = "`command`: turns of one command each, 5 rounds, 10ms between two, idle meanwhile";
    assert!(human(&planned, &roomy()).contains(said), "{}", human(&planned, &roomy()));
    let of =
        |of_study: &str, of_case: &str| text("", "2s", &format!("[turns]\n{of_study}\n{IDLE}{COMMAND}{of_case}\n"));
    let both = study_of(&of("rounds = 7\nlength = \"40ms\"", ""));
    assert_eq!((turns(&both, "command").commands, turns(&both, "idle").commands), (Some(7), None));
    assert_eq!((turns(&both, "command").turn, turns(&both, "idle").turn), (Span::ZERO, ms(40)));
    assert_eq!(turns(&study_of(&of("rounds = 7", "turns = { rounds = 9 }")), "command").commands, Some(9));
    let trials = study_of(&of("", "schedule = \"trials\""));
    assert_eq!(why(&trials, "command"), "the study asks for it");
    for length in ["length = \"20ms\"", "gap = \"1ms\"", "warm-up = \"10%\""] {
        let key = length.split(' ').next().unwrap();
        let (path, words) = problem(&of("", &format!("turns = {{ {length} }}")));
        assert!(path == format!("cases.command.turns.{key}") && words.contains("`rounds` says"), "{path}: {words}");
        let (path, words) = problem(&text("", "2s", &format!("[turns]\n{length}\n{COMMAND}")));
        assert!(
            path == format!("turns.{key}") && words.contains("those of these cases are commands"),
            "{path}: {words}"
        );
    }
    let (path, words) = problem(&of("", "[cases.other]\nworkload = \"rr\"\nturns = { rounds = 3 }"));
    assert!(path == "cases.other.turns.rounds" && words.contains("a longer `steady-state`"), "{path}: {words}");
    let (path, _) = problem(&text("", "2s", &format!("[turns]\nrounds = 3\n{IDLE}")));
    assert_eq!(path, "turns.rounds");
    let (path, words) = problem(&of("", "turns = { waiting = \"frozen\" }"));
    assert!(path == "cases.command.turns.waiting" && words.contains("time-outs"), "{path}: {words}");
}

#[test]
fn on_a_link_of_a_bounded_rate_no_turns_are_taken() {
    let bounded = |head: &str| text(head, "2s", &format!("[lab]\nlink-rate = \"1Gbit/s\"\n{IDLE}"));
    let study = study_of(&bounded(""));
    assert_eq!(study.lab.link_rate, Some(BitRate(1_000_000_000)));
    assert!(why(&study, "idle").starts_with("the rate of the link is bounded"));
    let (path, words) = problem(&bounded("schedule = \"turns\""));
    assert!(path == "schedule" && words.contains("the rate of the link is bounded"), "{path}: {words}");
}

#[test]
fn a_short_steady_state_has_shorter_turns_and_a_very_short_one_none() {
    assert_eq!(turns(&study_of(&text("", "100ms", IDLE)), "idle").turn, ms(10));
    let study = study_of(&text("", "40ms", IDLE));
    assert_eq!(why(&study, "idle"), "its steady state of 40ms is too short for ten rounds of turns");
    // What the study says stays, and the plan says what it comes to.
    let few = study_of(&text("turns = { length = \"20ms\" }", "100ms", IDLE));
    assert_eq!(turns(&few, "idle").turn, ms(20));
    let shown = human(&plan(&few, &roomy(), &Fake).unwrap(), &roomy());
    assert!(shown.contains("steady state has 5 of them, ten and more are better"), "{shown}");
    let scaled = crate::scale(study_of(&text("", "2s", IDLE)), 0.05).unwrap();
    assert_eq!(turns(&scaled, "idle").turn, ms(10));
    assert!(why(&crate::scale(scaled, 0.1).unwrap(), "idle").contains("too short"));
}

#[test]
fn a_steady_state_of_more_turns_than_are_recorded_has_longer_turns_or_none() {
    let half_an_hour = study_of(&text("", "30min", IDLE));
    assert_eq!(why(&half_an_hour, "idle"), "its steady state of 1800s holds more turns of 20ms than are recorded");
    let longer = study_of(&text("turns = { length = \"50ms\" }", "30min", IDLE));
    assert_eq!(turns(&longer, "idle").turn, ms(50));
}

#[test]
fn arms_that_cannot_be_alive_at_one_time_run_one_after_the_other_with_the_reason() {
    let merging =
        text("trust-domain = \"mine\"", "2s", IDLE).replace("\"container\"\n", "\"container\"\nmerging = \"tare\"\n");
    assert!(why(&study_of(&merging), "idle").starts_with("the arm `container` sets how the whole host treats memory"));
    let device = text("noise-floor = false", "2s", IDLE)
        .replace("\"container\"\n", "\"qemu\"\noptions = { device = \"/dev/sdb\" }\n[arms.other]\nplatform = \"qemu\"\noptions = { device = \"/dev/sdb\" }\n");
    let why_not = "`container` and `other` have the same device, which one guest has at a time";
    assert_eq!(why(&study_of(&device), "idle"), why_not);
    let one = device.replacen("sdb", "sdc", 1);
    assert_eq!(turns(&study_of(&one), "idle").turn, ms(20));
    let searched =
        "[cases.peak]\nworkload = \"rr\"\ncapacity = { most = 100 }\nqos = { response_time_p99_s = \"5ms\" }\n";
    assert_eq!(why(&study_of(&text("", "2s", searched)), "peak"), "its load is searched for");
    let added = "[cases.many]\nworkload = \"java\"\ndensity = { guests = [1, 2] }\n";
    assert_eq!(why(&study_of(&text("noise-floor = false", "2s", added)), "many"), "its guests are added one by one");
    let asked = study_of(&text("schedule = \"trials\"", "2s", IDLE));
    assert_eq!(why(&asked, "idle"), "the study asks for it");
}

/// The study with a machine that tare does not make in the container's place.
fn with_far(top: &str, cases: &str) -> String {
    text(top, "2s", cases).replace("\"container\"\n", "\"far\"\noptions = { host = \"a\" }\n")
}

#[test]
fn a_machine_elsewhere_takes_turns_and_no_room_here_and_the_plan_says_what_is_not_known_of_it() {
    let study = study_of(&with_far("", &format!("{IDLE}[cases.command]\nworkload = \"exec\"\n")));
    assert_eq!((turns(&study, "idle").turn, turns(&study, "command").commands), (ms(20), Some(5)));
    // The native arm and the baseline's replica, and none for the machine.
    let two = HostFacts { memory_available: ByteSize(2 << 30), ..roomy() };
    let planned = plan(&study, &two, &Fake).unwrap();
    assert_eq!((planned.cost.memory, planned.sets.iter().all(|set| set.len() == 3)), (ByteSize(2 << 30), true));
    let said = "`container` is driven in turns: CPU by a machine's own kernel is that of the whole block, turns of other arms included";
    assert!(planned.differences.iter().any(|all| all.starts_with(said)), "{:?}", planned.differences);
    let trials = plan(&study_of(&with_far("schedule = \"trials\"", IDLE)), &two, &Fake).unwrap();
    assert!(trials.differences.iter().all(|said| !said.contains("turns")), "{:?}", trials.differences);
    // Where all are elsewhere nothing of this host's is taken.
    let far = with_far("noise-floor = false", IDLE)
        .replace("platform = \"native\"", "platform = \"far\"\noptions = { host = \"b\" }");
    let none = HostFacts { memory_available: ByteSize(1 << 20), ..roomy() };
    let planned = plan(&study_of(&far), &none, &Fake).unwrap();
    assert_eq!((planned.sets.len(), planned.cost.memory), (3, ByteSize(0)));
}

#[test]
fn a_machine_elsewhere_is_one_guest_at_a_time_driven_from_here_and_never_stopped() {
    let far_baseline = with_far("", IDLE).replace("baseline = \"native\"", "baseline = \"container\"");
    let why_not = "`container` and `container-again` have the same machine, which one guest has at a time";
    assert_eq!(why(&study_of(&far_baseline), "idle"), why_not);
    let alone = far_baseline.replace("blocks = 3", "blocks = 3\nnoise-floor = false");
    assert_eq!(turns(&study_of(&alone), "idle").turn, ms(20));
    let client = "[hosts.c]\nfar = { host = \"c\" }\n[roles]\ndrivers = [\"c\"]\n";
    let all_far = alone.replace("platform = \"native\"", "platform = \"far\"\noptions = { host = \"b\" }") + client;
    assert!(why(&study_of(&all_far), "idle").starts_with("load comes from another machine"));
    // How long turns are was written for other hosts; that they are asked for was not.
    let lengths = all_far.replace(IDLE, &format!("{IDLE}turns = {{ length = \"50ms\" }}\n"));
    assert!(why(&study_of(&lengths), "idle").starts_with("load comes from another machine"));
    let (path, words) = problem(&all_far.replace(IDLE, &format!("{IDLE}schedule = \"turns\"\n")));
    assert!(path == "cases.idle.schedule" && words.contains("load comes from another machine"), "{path}: {words}");
    let busy = format!("{IDLE}busy-target = true\n");
    let said = why(&study_of(&with_far("", &busy)), "idle");
    assert!(said.ends_with("and tare cannot stop the processes of `container`"), "{said}");
    let (path, words) = problem(&with_far("", &format!("[turns]\nwaiting = \"frozen\"\n{IDLE}")));
    assert!(path == "turns.waiting" && words.contains("the processes of `container`"), "{path}: {words}");
}

#[test]
fn connections_to_a_machine_elsewhere_are_made_anew_for_turns_of_written_lengths_alone() {
    let bulk = "[cases.bulk]\nworkload = \"stream\"\n";
    assert_eq!(turns(&study_of(&text("", "2s", bulk)), "bulk").turn, ms(20));
    let said = why(&study_of(&with_far("", bulk)), "bulk");
    assert!(said.starts_with("each turn has new connections") && said.contains("`container`"), "{said}");
    let (path, words) = problem(&with_far("", &format!("{bulk}schedule = \"turns\"\n")));
    assert!(path == "cases.bulk.schedule" && words.contains("long against ten round trips"), "{path}: {words}");
    let length = "turns = { length = \"200ms\" }\n";
    assert_eq!(turns(&study_of(&with_far("", &format!("{bulk}{length}"))), "bulk").turn, ms(200));
}

const WRONG: &[Wrong] = &[
    ("schedule = \"turns\"", "schedule = \"turn\"", "cases.bulk.schedule", "did you mean `turns`?"),
    ("schedule = \"turns\"", "schedule = \"trials\"", "cases.bulk.turns", "no turns are taken"),
    ("length = \"20ms\"", "length = \"500us\"", "turns.length", "from 1ms"),
    ("length = \"20ms\"", "length = 20", "turns.length", "length of time"),
    ("length = \"20ms\"", "length = \"3s\"", "turns.length", "longer than the steady state of `idle` (2s)"),
    ("length = \"50ms\"", "length = \"3s\"", "cases.bulk.turns.length", "write \"200ms\" or less"),
    ("gap = \"1ms\"", "gap = \"2h\"", "turns.gap", "from 0s to 60s"),
    ("warm-up = \"10%\"", "warm-up = \"100%\"", "turns.warm-up", "from 0 % to 90 %"),
    ("warm-up = \"10%\"", "warm-up = \"10\"", "turns.warm-up", "must be a percentage"),
    ("warm-up = \"10%\"", "warm-up = 0.1", "turns.warm-up", "a text in quotes"),
    ("waiting = \"idle\"", "waiting = \"asleep\"", "turns.waiting", "choices: `idle`, `frozen`"),
    ("waiting = \"frozen\"", "waiting = \"idle\"", "cases.busy.turns.waiting", "`busy-target`"),
    (
        "workload = \"null\"",
        "workload = \"null\"\nturns = {}",
        "cases.floor.turns",
        "turns can be had with `rr`, `stream`",
    ),
    (
        "workload = \"null\"",
        "workload = \"null\"\nschedule = \"turns\"",
        "cases.floor.schedule",
        "`null` is not driven in turns",
    ),
    (
        "seed = 7",
        "seed = 7\nschedule = \"turns\"",
        "schedule",
        "and `floor` cannot take them: `null` is not driven in turns",
    ),
];

#[test]
fn what_is_wrong_with_turns_is_named_with_its_line_and_its_remedy() {
    assert_each_is_refused(GOOD, WRONG, &["cases.bulk.turns"]);
}

#[test]
fn turns_that_cannot_be_taken_are_refused_where_they_are_asked_for() {
    let (path, words) = problem(&text("schedule = \"trials\"", "2s", &format!("[turns]\ngap = \"1ms\"\n{IDLE}")));
    assert!(path == "turns" && words.contains("leave one of them out"), "{path}: {words}");
    let own = format!("[turns]\ngap = \"3ms\"\n{IDLE}schedule = \"turns\"\n");
    assert_eq!(turns(&study_of(&text("schedule = \"trials\"", "2s", &own)), "idle").gap, ms(3));
    let store = "[cases.orders]\nworkload = \"store\"\nturns = { waiting = \"frozen\" }\n";
    let (path, words) = problem(&text("", "20s", store));
    assert!(path == "cases.orders.turns.waiting" && words.contains("time-outs"), "{path}: {words}");
    let busy = "[cases.orders]\nworkload = \"store\"\nschedule = \"turns\"\nbusy-target = true\n";
    let (path, words) = problem(&text("", "20s", busy));
    assert!(path == "cases.orders.schedule" && words.contains("time-outs that go on"), "{path}: {words}");
    for (case, says) in [
        (
            "workload = \"rr\"\ncapacity = { most = 100 }\nqos = { response_time_p99_s = \"5ms\" }",
            "its load is searched for",
        ),
        ("workload = \"java\"\ndensity = { guests = [1] }", "added one by one"),
    ] {
        let (path, words) =
            problem(&text("noise-floor = false", "2s", &format!("[cases.x]\n{case}\nschedule = \"turns\"\n")));
        assert!(path == "cases.x.schedule" && words.contains(says), "{path}: {words}");
    }
}

#[test]
fn the_trials_of_a_case_in_turns_are_sets_and_cost_their_rounds_once() {
    let cases = format!(
        "{IDLE}neighbours = {{ count = 2, cpus = 1, memory = \"64MiB\" }}\n[cases.floor]\nworkload = \"null\"\n"
    );
    let study = study_of(&text("", "2s", &cases));
    let plan = plan(&study, &roomy(), &Fake).unwrap();
    assert_eq!(plan.sets.len(), 3);
    for set in &plan.sets {
        let of: Vec<_> = set.iter().map(|index| &plan.trials[*index as usize]).collect();
        assert!(of.len() == 3 && of.iter().all(|trial| trial.case == "idle" && trial.block == of[0].block), "{of:?}");
    }
    assert_eq!(plan.steps().len(), 3 + 9);
    // A set: 100 rounds of three turns of 20 ms and as many gaps of 1 ms; three trials of 2 s.
    assert_eq!(plan.cost.measuring, Span { ns: 3 * (100 * 3 * 21 + 3 * 2000) * 1_000_000 });
    // 100 ms and its start (10, 10 and 40 ms) for each trial; two neighbours for a set, natively.
    assert_eq!(plan.cost.around, ms(3 * (2 * (300 + 60) + 20)));
    assert_eq!(plan.cost.memory, ByteSize((3 << 30) + (128 << 20)));
    let shown = human(&plan, &roomy());
    assert!(shown.contains("`idle`: turns of 20ms, 1ms between two, idle meanwhile"), "{shown}");
    assert!(shown.contains("`floor`: one trial after the other: `null` is not driven in turns"), "{shown}");
}

#[test]
fn where_all_arms_do_not_fit_at_one_time_they_take_turns_in_pairs_with_the_baseline() {
    let study = study_of(&text("", "2s", IDLE));
    let small = HostFacts { memory_available: ByteSize(2 << 30), ..roomy() };
    let planned = plan(&study, &small, &Fake).unwrap();
    let reason = "the guests of its 3 arms together are promised 3GiB, and this host has 2.0 GiB available";
    let turns = *study.cases[0].schedule.turns().unwrap();
    assert_eq!(planned.study.cases[0].schedule, CaseSchedule::Pairs { turns, pairs: 2, why: reason.to_owned() });
    assert_eq!(
        planned.differences,
        [format!("the arms of `idle` take turns in pairs with the baseline, not all together: {reason}")]
    );
    assert_eq!(planned.hash, plan(&study, &roomy(), &Fake).unwrap().hash, "the study is the same");
    // Of each block of the study one pair with the container and one with the baseline's replica, each a block of its own.
    let steps = planned.steps();
    let blocks: Vec<u32> = steps.iter().map(|step| step[0].block).collect();
    assert_eq!(blocks, (1..=6).collect::<Vec<u32>>());
    let mut orders = std::collections::BTreeSet::new();
    for (pairs, block) in steps.chunks(2).zip(1..) {
        let mut others = Vec::new();
        for pair in pairs {
            let arms: Vec<&str> = pair.iter().map(|trial| trial.arm.as_str()).collect();
            assert!(arms.len() == 2 && arms.contains(&"native"), "{arms:?}");
            assert!(pair.iter().all(|own| own.block == pair[0].block && planned.study_block(own) == block));
            orders.insert(arms[0] == "native");
            others.extend(arms.into_iter().filter(|arm| *arm != "native"));
        }
        others.sort_unstable();
        assert_eq!(others, ["container", "native-again"]);
    }
    assert_eq!(orders.len(), 2, "the baseline is started first in some pairs and second in others");
    assert!(planned.trials.iter().enumerate().all(|(at, trial)| trial.index as usize == at));
    // Two sets of two arms for each block; the starts of the baseline and its replica, 10 ms each, and of the container, 40 ms.
    assert_eq!(planned.cost.measuring, Span { ns: 3 * 2 * (100 * 2 * 21) * 1_000_000 });
    assert_eq!(planned.cost.around, ms(3 * (4 * 100 + 3 * 10 + 40)));
    assert_eq!(planned.cost.memory, ByteSize(2 << 30));
    let shown = human(&planned, &small);
    assert!(
        shown.contains("12 = 3 blocks x 1 case x 3 arms + 3 of the baseline, one for each further pair"),
        "{shown}"
    );
    assert!(shown.contains(&format!("; in pairs with the baseline, because {reason}")), "{shown}");
}

#[test]
fn where_not_even_two_arms_fit_at_one_time_they_run_one_after_the_other() {
    let study = study_of(&text("", "2s", IDLE));
    let small = HostFacts { memory_available: ByteSize(1 << 30), ..roomy() };
    let planned = plan(&study, &small, &Fake).unwrap();
    assert_eq!((planned.sets.len(), planned.trials.len(), planned.cost.memory), (0, 9, ByteSize(1 << 30)));
    let reason = "the guests of even two of its arms together are promised 2GiB, and this host has 1.0 GiB available";
    assert_eq!(why(&planned.study, "idle"), reason);
    assert_eq!(planned.differences, [format!("the arms of `idle` run one after the other, not in turns: {reason}")]);
    assert_eq!(planned.hash, plan(&study, &roomy(), &Fake).unwrap().hash, "the study is the same");
    // One arm has nobody to take turns with, on whatever host.
    let mut one = study.clone();
    one.arms.truncate(1);
    let planned = plan(&one, &roomy(), &Fake).unwrap();
    assert_eq!((planned.sets.len(), planned.differences.len()), (0, 0));
}

#[test]
fn room_on_disk_decides_like_memory_and_pairs_need_the_baseline() {
    // Data of 800 MB for each arm's guest.
    let stores = "[cases.orders]\nworkload = \"store\"\nparameters = { db-size = \"400MB\" }\n";
    let study = study_of(&text("", "20s", stores));
    let disk = |free: u64| plan(&study, &HostFacts { disk_free: ByteSize(free << 20), ..roomy() }, &Fake).unwrap();
    let sets = |free| disk(free).sets.iter().map(Vec::len).collect::<Vec<_>>();
    assert_eq!((sets(4000), sets(2200), sets(1400)), (vec![3; 3], vec![2; 6], vec![]));
    let said = |free: u64, how: &str, arms: &str| {
        let all = disk(free).differences;
        assert!(
            all[0].contains(how) && all[0].ends_with(&format!("no room on disk for the guests of {arms}")),
            "{all:?}"
        );
    };
    said(2200, "in pairs with the baseline", "its 3 arms together");
    said(1400, "one after the other", "even two of its arms together");
    // An emulated arm runs by itself, after the pairs.
    let text = text("", "2s", IDLE).replace("[guest]", "[arms.other]\nplatform = \"container\"\n[guest]");
    let study = study_of(&text);
    let small = |emulated: &str| HostFacts {
        memory_available: ByteSize(2 << 30),
        emulated: vec![emulated.to_owned()],
        ..roomy()
    };
    let planned = plan(&study, &small("other"), &Fake).unwrap();
    assert_eq!(planned.steps().iter().map(|step| step.len()).collect::<Vec<_>>(), [2, 2, 1, 2, 2, 1, 2, 2, 1]);
    assert!(planned.trials.iter().zip(planned.trials.iter().skip(1)).all(|(one, next)| one.block <= next.block));
    assert!(plan(&study, &small("native"), &Fake).unwrap().sets.is_empty());
}

#[test]
fn emulated_arms_follow_the_turns_of_the_others() {
    let study = study_of(&text("", "2s", IDLE));
    let host = HostFacts { emulated: vec!["container".to_owned()], ..roomy() };
    let planned = plan(&study, &host, &Fake).unwrap();
    assert_eq!(planned.sets.iter().map(Vec::len).collect::<Vec<_>>(), [2, 2, 2]);
    for step in planned.steps() {
        let alone = step.iter().any(|trial| trial.arm == "container");
        assert_eq!(step.len(), if alone { 1 } else { 2 });
    }
    assert!(planned.trials.iter().enumerate().all(|(at, trial)| trial.index as usize == at));
    assert!(
        planned.differences[0].starts_with("`container` is emulated here and takes no turns"),
        "{:?}",
        planned.differences
    );
}
