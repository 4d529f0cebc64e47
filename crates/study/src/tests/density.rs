//! Guests that are added until the host carries no more, and memory that is merged while they are.

use tare_model::ballooning::Ballooning;
use tare_model::density::{DensitySpec, GuestSeries};
use tare_model::merging::{HostMemory, HugePages, MergeRule, Merging};
use tare_model::study::{Case, CaseLoad, Study};
use tare_model::units::{ByteSize, Span};

use super::{Wrong, assert_each_is_refused, roomy, study_of};
use crate::testing::Fake;
use crate::{HostFacts, human, parse, plan, scale};

/// A study that uses every field of merging and density.
pub(super) const GOOD: &str = include_str!("density.toml");

/// The 24 GiB of the published study.
fn published() -> HostFacts {
    HostFacts { cpus: vec![0, 1], memory_available: ByteSize(22 << 30), memory_total: ByteSize(24 << 30), ..roomy() }
}

fn merging(study: &Study, arm: &str) -> Option<Merging> {
    study.arms.iter().find(|other| other.id == arm).unwrap().host_memory.merging
}

#[test]
fn rules_are_read_with_their_fields_and_have_defaults() {
    let study = study_of(GOOD);
    assert_eq!(study.trust_domain.as_deref(), Some("this team's guests alone"));
    let some = |rule, zero_pages| Some(Merging { rule, zero_pages });
    let fixed = MergeRule::Fixed { pages_to_scan: 8000, sleep: Span::from_millis(10) };
    assert_eq!(merging(&study, "fixed"), some(fixed, true));
    assert_eq!(merging(&study, "script"), some(MergeRule::PublishedScript, false));
    assert_eq!(merging(&study, "ksmtuned"), some(MergeRule::Ksmtuned, false));
    let advisor = MergeRule::Advisor { target_scan_time: Span::from_secs(100), max_cpu: 50 };
    assert_eq!(merging(&study, "advisor"), some(advisor, false));
    assert_eq!(merging(&study, "own"), some(MergeRule::Tare { free_goal: 0.3, max_cpu: 0.5 }, false));
    assert_eq!((merging(&study, "off"), merging(&study, "plain")), (None, None));
    let huge: Vec<_> = study.arms.iter().filter_map(|arm| arm.host_memory.huge_pages).collect();
    assert_eq!(huge, [HugePages::Never, HugePages::Madvise]);

    let bare = |name: &str| merging(&study_of(&GOOD.replace("\"published-script\"", name)), "script").unwrap().rule;
    assert_eq!(bare("\"fixed\""), MergeRule::Fixed { pages_to_scan: 100, sleep: Span::from_millis(20) });
    assert_eq!(bare("\"advisor\""), MergeRule::Advisor { target_scan_time: Span::from_secs(200), max_cpu: 70 });
    assert_eq!(bare("{ rule = \"tare\" }"), MergeRule::Tare { free_goal: 0.2, max_cpu: 0.7 });
    assert_eq!(merging(&study_of(&GOOD.replace("\"ksmtuned\"", "{ rule = \"off\" }")), "ksmtuned"), None);
}

#[test]
fn ballooning_is_read_and_has_the_constants_of_its_policy() {
    let ballooning = |study: &Study| {
        let arm = study.arms.iter().find(|arm| arm.id == "ballooned").unwrap();
        arm.host_memory.ballooning
    };
    let guaranteed = ByteSize(512 << 20);
    let asked = Ballooning { pressure: 0.3, critical: 0.1, guest_free: 0.25, guaranteed };
    assert_eq!(ballooning(&study_of(GOOD)), Some(asked));
    let own = |text: &str| {
        let line = GOOD.lines().find(|line| line.starts_with("ballooning")).unwrap();
        ballooning(&study_of(&GOOD.replace(line, &format!("ballooning = {text}"))))
    };
    assert_eq!(own("\"mom\""), Some(Ballooning::MOM));
    assert_eq!(own("{ rule = \"mom\" }"), Some(Ballooning::MOM));
    assert_eq!((own("\"off\""), own("{ rule = \"off\" }")), (None, None));
}

/// How a case adds guests.
pub(super) fn spec(case: &Case) -> &DensitySpec {
    let CaseLoad::Density { spec, .. } = &case.load else { panic!("{:?}", case.load) };
    spec
}

#[test]
fn series_and_limits_are_read_and_have_defaults() {
    let study = study_of(GOOD);
    let listed = DensitySpec {
        tile: Vec::new(),
        guests: GuestSeries::Listed(vec![1, 4, 8, 16, 32]),
        reserve: Some(ByteSize(2 << 30)),
        settle: Span::from_secs(100),
        rest: Span::from_secs(300),
        pressure: 0.25,
    };
    assert_eq!(spec(&study.cases[0]), &listed);
    let search = DensitySpec {
        tile: Vec::new(),
        guests: GuestSeries::Search { from: 2, most: 64 },
        reserve: None,
        settle: Span::from_secs(120),
        rest: Span::ZERO,
        pressure: 0.4,
    };
    assert_eq!(spec(&study.cases[1]), &search);
    let from_one = study_of(&GOOD.replace("from = 2, ", ""));
    assert_eq!(spec(&from_one.cases[1]).guests, GuestSeries::Search { from: 1, most: 64 });
    let bounds: Vec<_> =
        study.cases[0].qos.iter().map(|objective| (objective.metric.as_str(), objective.bound)).collect();
    assert_eq!(bounds, [("operations_per_guest_per_s", 5000.0), ("response_time_p50_s", 0.001)]);
}

#[test]
fn the_arm_of_the_noise_floor_treats_the_hosts_memory_as_the_baseline_does() {
    let study = study_of(&GOOD.replace("baseline = \"plain\"", "baseline = \"own\""));
    let replica = study.arms.last().unwrap();
    let own = MergeRule::Tare { free_goal: 0.3, max_cpu: 0.5 };
    let expected = HostMemory {
        merging: Some(Merging { rule: own, zero_pages: false }),
        huge_pages: Some(HugePages::Madvise),
        ..HostMemory::default()
    };
    assert_eq!((replica.replica_of.as_deref(), replica.host_memory), (Some("own"), expected));
}

#[test]
fn scaling_shortens_the_rest_and_no_limit() {
    let half = scale(study_of(GOOD), 0.5).unwrap();
    let density = spec(&half.cases[0]);
    assert_eq!((density.rest, density.settle), (Span::from_secs(150), Span::from_secs(100)));
}

pub(super) const WRONG: &[Wrong] = &[
    ("trust-domain = \"this team's guests alone\"", "trust-domain = \" \"", "trust-domain", "is empty"),
    ("trust-domain = \"this team's guests alone\"", "trust-domain = true", "trust-domain", "a text in quotes"),
    ("trust-domain = \"this team's guests alone\"\n", "", "arms.fixed.merging", "can be read by timing"),
    (
        "trust-domain = \"this team's guests alone\"\n",
        "",
        "arms.fixed.merging",
        "`trust-domain = \"this team's guests alone\"`",
    ),
    (
        "merging = \"published-script\"",
        "merging = \"publishd-script\"",
        "arms.script.merging",
        "did you mean `published-script`?",
    ),
    ("merging = \"published-script\"", "merging = \"quick\"", "arms.script.merging", "choices: `off`, `fixed`"),
    ("merging = \"published-script\"", "merging = true", "arms.script.merging", "must be \"off\" or \"fixed\""),
    ("merging = \"published-script\"", "merging = {}", "arms.script.merging.rule", "has no `rule`"),
    ("merging = \"off\"", "merging = \"tare\"", "arms.off.merging", "not the host's to merge"),
    (
        "merging = \"off\"",
        "merging = { rule = \"off\", zero-pages = true }",
        "arms.off.merging.zero-pages",
        "leave it out",
    ),
    (
        "merging = \"ksmtuned\"",
        "merging = { rule = \"ksmtuned\", max-cpu = 5 }",
        "arms.ksmtuned.merging.max-cpu",
        "fields of `ksmtuned`: `zero-pages`",
    ),
    ("rule = \"fixed\"", "rule = \"advisor\"", "arms.fixed.merging.pages-to-scan", "is no field of the rule `advisor`"),
    ("critical = 0.1", "critical = 0.4", "arms.ballooned.ballooning.critical", "is more than `pressure`, which is 0.3"),
    ("rule = \"mom\"", "rule = \"mon\"", "arms.ballooned.ballooning.rule", "did you mean `mom`?"),
    ("guest-free = 0.25", "guest-free = 25", "arms.ballooned.ballooning.guest-free", "from 0.01 to 1"),
    ("merging = \"off\"", "ballooning = \"mom\"", "arms.off.ballooning", "its guests have no balloon"),
    ("pages-to-scan = 8000", "pages-to-scan = 0", "arms.fixed.merging.pages-to-scan", "whole number from 1"),
    ("pages-to-scan = 8000", "pages = 8000", "arms.fixed.merging.pages", "fields here: `rule`"),
    (
        "pages-to-scan = 8000",
        "pages_to_scan = 8000",
        "arms.fixed.merging.pages_to_scan",
        "did you mean `pages-to-scan`?",
    ),
    ("sleep = \"10ms\"", "sleep = 10", "arms.fixed.merging.sleep", "must be a length of time"),
    ("sleep = \"10ms\"", "sleep = \"1500us\"", "arms.fixed.merging.sleep", "whole multiples of 1ms"),
    ("sleep = \"10ms\"", "sleep = \"0s\"", "arms.fixed.merging.sleep", "such as \"1ms\""),
    (
        "target-scan-time = \"100s\"",
        "target-scan-time = \"1500ms\"",
        "arms.advisor.merging.target-scan-time",
        "such as \"1s\"",
    ),
    ("max-cpu = 50", "max-cpu = 0.5", "arms.advisor.merging.max-cpu", "whole number from 1 to 100"),
    ("max-cpu = 0.5", "max-cpu = 50", "arms.own.merging.max-cpu", "50 % is 0.5"),
    ("free-goal = 0.3", "free-goal = 30", "arms.own.merging.free-goal", "a share, not a percentage"),
    ("free-goal = 0.3", "free-goal = -1", "arms.own.merging.free-goal", "from 0.01 to 1"),
    ("zero-pages = true", "zero-pages = 1", "arms.fixed.merging.zero-pages", "`true` or `false`"),
    ("huge-pages = \"never\"", "huge-pages = \"nevr\"", "arms.fixed.huge-pages", "did you mean `never`?"),
    ("huge-pages = \"never\"", "huge-pages = false", "arms.fixed.huge-pages", "\"always\" or \"madvise\" or \"never\""),
    ("noise-floor = true", "huge-pages = \"never\"", "huge-pages", "`huge-pages` stands in `[arms.ID]`"),
    (
        "parameters = { memory = \"zeroed\" }\ndensity",
        "parameters = { one-guest-only = true }\ndensity",
        "cases.listed.density",
        "it can be had with `java`",
    ),
    (
        "parameters = { memory = \"zeroed\" }",
        "guests = 2",
        "cases.listed.guests",
        "`density = { guests = [...] }` has the numbers",
    ),
    ("parameters = { memory = \"zeroed\" }", "drivers = 2", "cases.listed.drivers", "cannot stand beside `density`"),
    (
        "parameters = { memory = \"zeroed\" }",
        "busy-target = true",
        "cases.listed.busy-target",
        "cannot stand beside `density`",
    ),
    (
        "parameters = { memory = \"zeroed\" }",
        "neighbours = { count = 1, cpus = 1, memory = \"64MiB\" }",
        "cases.listed.neighbours",
        "each other's neighbours",
    ),
    ("guests = [1, 4, 8, 16, 32]", "guests = 32", "cases.listed.density.guests", "must be a list"),
    ("guests = [1, 4, 8, 16, 32]", "guests = []", "cases.listed.density.guests", "lists 0 values"),
    (
        "guests = [1, 4, 8, 16, 32]",
        "guests = [1, 4, 4]",
        "cases.listed.density.guests.2",
        "each number once, ascending",
    ),
    ("guests = [1, 4, 8, 16, 32]", "guests = [4, 1]", "cases.listed.density.guests.1", "is 1, and 4 stands before it"),
    ("guests = [1, 4, 8, 16, 32]", "guests = [0, 1]", "cases.listed.density.guests.0", "whole number from 1 to 256"),
    ("guests = [1, 4, 8, 16, 32]", "guests = [1, 257]", "cases.listed.density.guests.1", "whole number from 1 to 256"),
    ("guests = [1, 4, 8, 16, 32]", "guests = [\"1\"]", "cases.listed.density.guests.0", "the text \"1\""),
    ("guests = [1, 4, 8, 16, 32], reserve", "reserve", "cases.listed.density.guests", "has no `guests`"),
    ("reserve = \"2GiB\"", "reserve = \"2G\"", "cases.listed.density.reserve", "must be a size"),
    ("reserve = \"2GiB\"", "reserve = \"2MiB\"", "cases.listed.density.reserve", "the host's own programs take"),
    ("reserve = \"2GiB\"", "reserve = \"2000000TiB\"", "cases.listed.density.reserve", "Is the unit right?"),
    ("settle = \"100s\"", "settle = 100", "cases.listed.density.settle", "must be a length of time"),
    ("rest = \"5m\"", "rest = \"5 moons\"", "cases.listed.density.rest", "must be a length of time"),
    ("rest = \"5m\"", "pause = \"5m\"", "cases.listed.density.pause", "fields here: `guests`"),
    ("pressure = 0.25", "pressure = 25", "cases.listed.density.pressure", "25 % is 0.25"),
    ("pressure = 0.25", "pressure = 0", "cases.listed.density.pressure", "from 0.01 to 1"),
    ("pressure = 0.25", "pressure = \"some\"", "cases.listed.density.pressure", "must be a number"),
    (
        "operations_per_guest_per_s =",
        "operations_per_gest_per_s =",
        "cases.listed.qos.operations_per_gest_per_s",
        "did you mean `operations_per_guest_per_s`?",
    ),
    (
        "operations_per_guest_per_s =",
        "guests_held =",
        "cases.listed.qos.guests_held",
        "is no metric that `java` yields",
    ),
    ("\"5000/s\"", "5000", "cases.listed.qos.operations_per_guest_per_s", "must be a rate"),
    (
        "search = { from = 2, most = 64 }",
        "search = { from = 2 }",
        "cases.search.density.guests.search.most",
        "has no `most`",
    ),
    (
        "search = { from = 2, most = 64 }",
        "search = { from = 65, most = 64 }",
        "cases.search.density.guests.search.most",
        "less than the 65",
    ),
    (
        "search = { from = 2, most = 64 }",
        "search = { most = 300 }",
        "cases.search.density.guests.search.most",
        "whole number from 1 to 256",
    ),
    ("search = { from = 2, most = 64 }", "look = {}", "cases.search.density.guests.look", "fields here: `search`"),
];

/// Of these, what a schema for editors cannot find.
pub(super) const BEYOND_A_SCHEMA: &[&str] = &[
    "critical = 0.4",
    "ballooning = \"mom\"",
    "",
    "merging = \"tare\"",
    "parameters = { one-guest-only = true }\ndensity",
    "sleep = \"1500us\"",
    "sleep = \"0s\"",
    "target-scan-time = \"1500ms\"",
    "guests = [4, 1]",
    "reserve = \"2MiB\"",
    "reserve = \"2000000TiB\"",
    "rest = \"5 moons\"",
    "operations_per_gest_per_s =",
    "guests_held =",
    "5000",
    "search = { from = 65, most = 64 }",
];

#[test]
fn each_field_wrong_in_turn_is_named_with_its_line_and_its_remedy() {
    assert_each_is_refused(GOOD, WRONG, &[]);
}

#[test]
fn more_numbers_than_can_be_measured_are_refused() {
    let numbers: Vec<String> = (1..=65).map(|n| n.to_string()).collect();
    let text = GOOD.replace("[1, 4, 8, 16, 32]", &format!("[{}]", numbers.join(", ")));
    let error = parse("bad.toml", &text, &Fake).unwrap_err();
    assert!(error.problems()[0].message.contains("lists 65 values"), "{}", error.render(false));
}

#[test]
fn a_machine_that_tare_does_not_make_is_not_added_beyond_its_number_and_its_host_is_not_set() {
    let far = "platform = \"far\"\noptions = { host = \"a\" }\nhuge-pages = \"never\"";
    let text = GOOD.replace("platform = \"lxc\"\nmerging = \"off\"", far);
    let error = parse("bad.toml", &text, &Fake).unwrap_err();
    let paths: Vec<String> = error.problems().iter().map(|problem| problem.path.join(".")).collect();
    assert_eq!(paths, ["arms.off.huge-pages", "cases.listed.density", "cases.search.density"]);
    let few = &error.problems()[1].message;
    assert!(few.contains("32 guests at one time, of which the arm has 1"), "{few}");
}

#[test]
fn machines_elsewhere_are_added_in_numbers_and_nothing_is_promised_of_this_host() {
    let text = |arms: &str| {
        format!(
            "schema = 1\nname = \"far\"\nquestion = \"How many?\"\nbaseline = \"far\"\nblocks = 1\nnoise-floor = false\n\
             [arms.far]\nplatform = \"far\"\noptions = {{ host = \"a\", machines = 8 }}\n{arms}\
             [guest]\ncpus = 1\nmemory = \"3GiB\"\n[phases]\nsteady-state = \"1s\"\n\
             [cases.many]\nworkload = \"java\"\ndensity = {{ guests = {{ search = {{ most = 8 }} }} }}\n"
        )
    };
    // Not one such guest fits on this host.
    let small = HostFacts { memory_available: ByteSize(1 << 30), ..roomy() };
    let study = study_of(&text(""));
    let made = plan(&study, &small, &Fake).unwrap();
    let shown = human(&made, &small);
    assert!(
        made.cost.memory.0 == 0 && !shown.contains("kept back, at most") && !shown.contains("promises up to"),
        "{shown}"
    );
    assert!(shown.contains("a scale-up stops when a machine cannot be started"), "{shown}");
    let said = "`far` is added machine by machine, on a host whose memory is not seen";
    assert!(made.differences.iter().any(|own| own.starts_with(said)), "{:?}", made.differences);
    let mixed = text("[arms.near]\nplatform = \"native\"\n");
    let error = plan(&study_of(&mixed), &small, &Fake).unwrap_err().to_string();
    assert!(error.contains("many"), "{error}");
    let shown = human(&plan(&study_of(&mixed), &roomy(), &Fake).unwrap(), &roomy());
    assert!(shown.contains("kept back, at most") && shown.contains(said), "{shown}");
    let more = text("").replace("most = 8", "most = 9");
    let error = parse("bad.toml", &more, &Fake).unwrap_err();
    assert_eq!(error.problems()[0].path, ["cases", "many", "density"]);
    let of_the_host = text("") + "qos = { memory_available_bytes = \"1GiB\", response_time_p99_s = \"5ms\" }\n";
    let error = parse("bad.toml", &of_the_host, &Fake).unwrap_err();
    let paths: Vec<String> = error.problems().iter().map(|problem| problem.path.join(".")).collect();
    assert_eq!(paths, ["cases.many.qos.memory_available_bytes"]);
}

#[test]
fn a_platform_that_cannot_merge_is_reported_and_not_asked_for_trust() {
    let only_off: Vec<&str> =
        GOOD.lines().filter(|line| !line.contains("merging") && !line.contains("trust")).collect();
    let text = only_off.join("\n").replace("platform = \"lxc\"", "platform = \"lxc\"\nmerging = \"tare\"");
    let error = parse("bad.toml", &text, &Fake).unwrap_err();
    assert_eq!(error.problems().len(), 1, "{}", error.render(false));
    assert_eq!(error.problems()[0].help.as_deref(), Some("use another"));
}

#[test]
fn the_side_channel_is_reported_where_a_study_names_no_trust_domain() {
    let text = GOOD.replace("trust-domain = \"this team's guests alone\"\n", "");
    insta::assert_snapshot!("no_trust_domain", parse("study.toml", &text, &Fake).unwrap_err().render(false));
}

#[test]
fn what_a_scale_up_takes_is_counted_to_its_end() {
    let mut study = study_of(GOOD);
    study.arms.retain(|arm| ["plain", "own"].contains(&arm.id.as_str()));
    study.cases.truncate(1);
    let cost = plan(&study, &published(), &Fake).unwrap().cost;
    // Five numbers of guests, a minute each, on two arms in three blocks.
    assert_eq!(cost.measuring, Span::from_secs(5 * 60 * 6));
    // 32 starts of 40 ms, a rest of 300 s at each number, and 100 s for merging on one of the arms.
    let trial = 100 + 32 * 40 + 5 * 300_000;
    assert_eq!(cost.around, Span::from_millis((2 * trial + 5 * 100_000) * 3));
    assert_eq!(cost.memory, ByteSize(96 << 30));
}

#[test]
fn overcommit_is_no_reason_to_refuse_and_not_even_one_guest_is() {
    let study = study_of(GOOD);
    let refusal = |available: u64| {
        let host = HostFacts { memory_available: ByteSize(available << 20), ..published() };
        plan(&study, &host, &Fake).err().map(|error| error.to_string()).unwrap_or_default()
    };
    assert_eq!(refusal(5 << 10), "", "96 GiB are promised, and one guest of 3 GiB fits above 2 GiB");
    let refused = refusal((5 << 10) - 1);
    let figures = "it touches 3.0 GiB at once, 2.0 GiB are kept back (`reserve`), and this host has 5.0 GiB available";
    assert!(refused.contains(figures) && refused.contains("keep less back"), "{refused}");
    // The lazy guests of the other case touch less, and a tenth of 24 GiB is kept back for them.
    assert!(!refused.contains("`search`") && refusal(2600).contains("case `search`"), "{refused}");
}

#[test]
fn a_case_of_a_fixed_number_of_guests_is_still_refused_beside_one_that_adds_them() {
    let text = GOOD.replace("[cases.search]", "[cases.many]\nworkload = \"store\"\nguests = 16\n\n[cases.search]");
    let refused = plan(&study_of(&text), &published(), &Fake).unwrap_err().to_string();
    assert!(refused.contains("case `many` promises 48GiB") && !refused.contains("`listed`"), "{refused}");
}

#[test]
fn a_plan_tells_how_guests_are_added_what_is_promised_and_what_is_done_to_the_host() {
    let mut study = study_of(GOOD);
    study.blocks = 1;
    study.arms.retain(|arm| ["plain", "fixed", "own"].contains(&arm.id.as_str()));
    let shown = |study: &Study| human(&plan(study, &published(), &Fake).unwrap(), &published());
    insta::assert_snapshot!("human_density", shown(&study));
    // Cases that add guests alike are listed once.
    study.cases[1].load = study.cases[0].load.clone();
    let alike = shown(&study);
    assert_eq!(alike.matches("`listed`, `search`: ").count(), 3, "{alike}");
    // Where nothing merges, there is no host to set and nobody to trust.
    study.arms.retain(|arm| arm.id == "plain");
    let plain = shown(&study);
    assert!(!plain.contains("merging") && !plain.contains("  trust") && !plain.contains("  host"), "{plain}");
}
