//! Each field wrong in turn: the error names the right line and the right field, and says what was meant.

use tare_model::study::Guests;

use super::{GOOD, Wrong, assert_each_is_refused};
use crate::parse;
use crate::testing::Fake;

const WRONG: &[Wrong] = &[
    ("subject = [\"runc\"]", "subject = [\"run\"]", "published.subject.0", "did you mean `runc`?"),
    ("subject = [\"runc\"]", "subject = []", "published.subject", "lists 0 values"),
    ("subject = [\"runc\"]\n", "", "published.subject", "`published` has no `subject`"),
    ("report = \"000\"", "report = \" \"", "published.report", "is empty"),
    ("effect = \"little\"", "effect = \"\"", "published.deviations.0.effect", "is empty"),
    ("effect = \"little\"\n", "", "published.deviations.0.effect", "has no `effect`"),
    ("why = \"there is no other\"", "reason = \"none\"", "published.deviations.0.reason", "is not a field"),
    ("schema = 1", "schema = 2", "schema", "written by a newer tare"),
    ("schema = 1", "schema = 0", "schema", "whole number from 1 to 1"),
    ("schema = 1\n", "", "schema", "add `schema = 1`"),
    ("name = \"good\"", "name = \"../Good Study\"", "name", "good-study"),
    ("name = \"good\"", "name = \"\"", "name", "is empty"),
    ("name = \"good\"", "name = 7", "name", "must be a text in quotes, but here it is the number 7"),
    ("question = \"Is every field read?\"", "question = \" \"", "question", "is empty"),
    ("question = \"Is every field read?\"", "question = \"a\\u0000b\"", "question", "control character '\\0'"),
    ("label = \"on the host\"", "label = \"\\u001b[31m\"", "arms.native.label", "control character"),
    ("question = \"Is every field read?\"\n", "", "question", "the study has no `question`"),
    ("baseline = \"native\"", "baseline = \"nativ\"", "baseline", "did you mean `native`?"),
    ("baseline = \"native\"\n", "", "baseline", "has no `baseline`"),
    ("blocks = 3", "blocks = 0", "blocks", "whole number from 1"),
    ("blocks = 3", "blocks = -3", "blocks", "whole number from 1"),
    ("blocks = 3", "blocks = 3.5", "blocks", "here it is the number 3.5"),
    ("blocks = 3", "blocks = 99999999999999999999", "blocks", "a number beyond 64 bits"),
    ("blocks = 3", "blocks = 1", "blocks", "noise floor takes at least 2"),
    ("blocks = 3", "blocks = { at-least = 5, at-most = 60, until = \"2%\" }", "blocks.at-least", "whole number from 6"),
    ("blocks = 3", "blocks = { at-least = 12, at-most = 9, until = \"2%\" }", "blocks.at-most", "`at-least` is 12"),
    ("blocks = 3", "blocks = { at-least = 12, at-most = 60 }", "blocks.until", "`blocks` has no `until`"),
    ("blocks = 3", "blocks = { at-least = 12, at-most = 60, until = 2 }", "blocks.until", "a text in quotes"),
    ("blocks = 3", "blocks = { at-least = 12, at-most = 60, until = \"0%\" }", "blocks.until", "above 0 %"),
    ("blocks = 3", "blocks = { at-least = 12, at-most = 60, until = \"100 %\" }", "blocks.until", "below 100 %"),
    (
        "blocks = 3",
        "blocks = { at-least = 12, at-most = 60, until = \"0.02\" }",
        "blocks.until",
        "must be a percentage",
    ),
    ("blocks = 3", "blocks = { at-least = 12, most = 60, until = \"2%\" }", "blocks.most", "is not a field"),
    ("blocks = 3", "block = 3", "block", "did you mean `blocks`?"),
    ("seed = 7", "seed = \"7\"", "seed", "whole number"),
    ("noise-floor = true", "noise-floor = \"yes\"", "noise-floor", "`true` or `false`"),
    ("noise-floor = true", "noise_floor = true", "noise_floor", "did you mean `noise-floor`?"),
    ("noise-floor = true", "mtu = 1500", "mtu", "`mtu` stands in `[lab]`"),
    ("noise-floor = true", "colour = 1", "colour", "fields here: `schema`"),
    ("[arms.runc]", "[arms.\"Run C\"]", "arms.Run C", "run-c"),
    ("[arms.runc]", "[arms.native-again]", "arms.native-again", "the arm that `noise-floor` adds"),
    ("platform = \"native\"", "platform = \"naive\"", "arms.native.platform", "did you mean `native`?"),
    ("platform = \"native\"", "", "arms.native.platform", "`arms.native` has no `platform`"),
    ("label = \"on the host\"", "label = 1", "arms.native.label", "a text in quotes"),
    ("label = \"on the host\"", "options = { x = 1 }", "arms.native.options.x", "is no field"),
    ("label = \"on the host\"", "options = 5", "arms.native.options", "must be a table"),
    ("options = { runtime = \"runc\" }", "options = { runtime = 1 }", "arms.runc.options.runtime", "must be a text"),
    ("options = { runtime = \"runc\" }", "options = { runtime = 1979-05-27 }", "arms.runc.options.runtime", "a date"),
    ("options = { runtime = \"runc\" }", "", "arms.runc.options", "has no `runtime`"),
    (
        "label = \"on the host\"",
        "options = { switch = false }",
        "arms.native.options.switch",
        "must be \"auto\", \"on\" or \"off\", but here it is `false` did you mean `\"off\"`?",
    ),
    ("label = \"on the host\"", "options = { merge = \"on\" }", "arms.native.options.merge", "must be true or false"),
    ("[guest]\ncpus = 1", "[guest]\ncpus = 0", "guest.cpus", "whole number from 1"),
    ("memory = \"256MiB\"", "memory = 256", "guest.memory", "must be a size, but here it is the number 256"),
    ("memory = \"256MiB\"", "memory = \"256M\"", "guest.memory", "did you mean \"256MiB\" or \"256MB\"?"),
    ("memory = \"256MiB\"", "memory = \"1KiB\"", "guest.memory", "tare's agent takes"),
    ("memory = \"256MiB\"", "memory = \"1000000TiB\"", "guest.memory", "Is the unit right?"),
    ("memory = \"256MiB\"\n", "", "guest.memory", "`guest` has no `memory`"),
    ("warm-up = \"300ms\"", "warm-up = 300", "phases.warm-up", "must be a length of time"),
    ("warm-up = \"300ms\"", "warm-up = \"300 furlongs\"", "phases.warm-up", "must be a length of time"),
    ("ramp-up = \"50ms\"", "ramp-up = \"9999h\"", "phases.ramp-up", "from 0s to 30 days"),
    ("steady-state = \"2s\"", "steady-state = \"0s\"", "phases.steady-state", "only steady state is measured"),
    ("steady-state = \"2s\"", "steady-stat = \"2s\"", "phases.steady-stat", "did you mean `steady-state`?"),
    ("steady-state = \"2s\"\n", "", "phases.steady-state", "`phases` has no `steady-state`"),
    ("ramp-down = \"100ms\"", "ramp-down = true", "phases.ramp-down", "must be a length of time"),
    ("mtu = 9000", "mtu = 90", "lab.mtu", "from 576 to 65535"),
    ("offloads = false", "link-rate = \"1GB/s\"", "lab.link-rate", "bit rate"),
    ("offloads = false", "link-rate = \"400Gbit/s\"", "lab.link-rate", "from 1Mbit/s to 100Gbit/s"),
    (
        "offloads = false",
        "wire = { interface = \"e\", addresses = \"10.0.0.1-10.0.0.2/24\" }",
        "lab.wire.addresses",
        "beside the bridge take 2",
    ),
    (
        "offloads = false",
        "wire = { interface = \"e\", addresses = \"10.0.0.1-10.0.4.1/16\" }",
        "lab.wire.addresses",
        "1024 are the most",
    ),
    (
        "offloads = false",
        "wire = { interface = \"e\", addresses = \"10.0.0.9-10.0.0.1/24\" }",
        "lab.wire.addresses",
        "a range of addresses",
    ),
    (
        "offloads = false",
        "wire = { interface = \"e\", addresses = \"10.0.0.1-10.0.0.9/24\", attach = \"macvlan\" }",
        "lab.wire.attach",
        "cannot be had with the arm `runc`: its links are made by a daemon",
    ),
    (
        "offloads = false",
        "offloads = false\nwire = { interface = \"e\", addresses = \"10.0.0.1-10.0.0.9/24\", attach = \"macvlan\" }",
        "lab.offloads",
        "a link over a card always segments",
    ),
    (
        "offloads = false",
        "wire = { interface = \"e\", addresses = \"10.0.0.1-10.0.0.9/24\", attach = \"macvlen\" }",
        "lab.wire.attach",
        "did you mean `macvlan`?",
    ),
    ("offloads = false", "offloads = 0", "lab.offloads", "`true` or `false`"),
    ("\"cubic\"", "\"Cubic!\"", "lab.congestion-control", "tcp_available_congestion_control"),
    ("{ client-cpus = \"0\", guest-cpus = \"1-3,5\" }", "\"seperate\"", "lab.placement", "did you mean `separate`?"),
    ("{ client-cpus = \"0\", guest-cpus = \"1-3,5\" }", "1", "lab.placement", "\"separate\" or \"same-cpu\""),
    ("client-cpus = \"0\"", "client-cpus = \"3\"", "lab.placement", "gives CPU 3 to the driver and to the guests"),
    ("client-cpus = \"0\"", "client-cpus = \"3-1\"", "lab.placement.client-cpus", "no list of CPUs"),
    ("client-cpus = \"0\", ", "", "lab.placement.client-cpus", "has no `client-cpus`"),
    ("sample-interval = \"100ms\"", "sample-interval = \"1us\"", "lab.sample-interval", "from 10ms to 60s"),
    (
        "[roles]\ndrivers = [\"local\"]",
        "[roles]\ndrivers = [\"db7\"]",
        "roles.drivers.0",
        "names the host `db7`, which is not there",
    ),
    (
        "[roles]\ndrivers = [\"local\"]",
        "[hosts.c]\nfar = { host = \"db7\" }\n[roles]\ndrivers = [\"c\"]",
        "roles.drivers.0",
        "cannot reach `native`",
    ),
    (
        "[roles]\ndrivers = [\"local\"]",
        "[hosts.c]\nfar = { host = \"db7\" }\n[roles]\ndrivers = [\"local\"]",
        "hosts.c",
        "has no role",
    ),
    (
        "[roles]\ndrivers = [\"local\"]",
        "[hosts.c]\nfar = { hots = 1 }\n[roles]\ndrivers = [\"c\"]",
        "hosts.c.far.hots",
        "did you mean `host`?",
    ),
    (
        "[roles]\ndrivers = [\"local\"]",
        "[hosts.c]\nfar = {}\n[roles]\ndrivers = [\"c\"]",
        "hosts.c.far",
        "has no `host`",
    ),
    (
        "[roles]\ndrivers = [\"local\"]",
        "[hosts.c]\nfra = {}\n[roles]\ndrivers = [\"c\"]",
        "hosts.c.fra",
        "did you mean `far`?",
    ),
    (
        "[roles]\ndrivers = [\"local\"]",
        "[hosts.c]\nnative = {}\n[roles]\ndrivers = [\"c\"]",
        "hosts.c.native",
        "leads to no other machine",
    ),
    (
        "[roles]\ndrivers = [\"local\"]",
        "[hosts.c]\nfar = { host = \"a\" }\nnative = {}\n[roles]\ndrivers = [\"c\"]",
        "hosts.c",
        "has 2 keys",
    ),
    (
        "[roles]\ndrivers = [\"local\"]",
        "[hosts.local]\nfar = { host = \"a\" }\n[roles]\ndrivers = [\"local\"]",
        "hosts.local",
        "is always there",
    ),
    ("[roles]\ndrivers = [\"local\"]", "[roles]\ndrivers = [\"local\", \"local\"]", "roles.drivers.1", "a second time"),
    ("[roles]\ndrivers = [\"local\"]", "[roles]\ndrivers = []", "roles.drivers", "takes from 1 to 64"),
    ("[roles]\ndrivers = [\"local\"]", "[roles]\ndrivers = \"local\"", "roles.drivers", "must be a list"),
    (
        "[roles]\ndrivers = [\"local\"]",
        "[roles]\nservices = \"lokal\"",
        "roles.services",
        "names the host `lokal`, which is not there",
    ),
    (
        "[roles]\ndrivers = [\"local\"]",
        "[hosts.c]\nfar = { host = \"db7\" }\n[roles]\nservices = \"c\"",
        "roles.services",
        "cannot reach `native`",
    ),
    (
        "sample-interval = \"100ms\"\n\n[roles]\ndrivers = [\"local\"]",
        "wire = { interface = \"e\", addresses = \"192.0.2.9-192.0.2.20/24\" }\n[hosts.c]\nfar = { host = \"db7\" }\n[roles]\nservices = \"c\"",
        "roles.services",
        "names `c`, which has no address on the wire",
    ),
    (
        "sample-interval = \"100ms\"\n\n[roles]\ndrivers = [\"local\"]",
        "wire = { interface = \"e\", addresses = \"192.0.2.9-192.0.2.20/24\" }\n\
         [hosts.c]\nfar = { host = \"db7\", address = \"192.0.3.2\" }\n[roles]\nservices = \"c\"",
        "roles.services",
        "whose address 192.0.3.2 is not in the network of the wire (192.0.2.9-192.0.2.20/24)",
    ),
    (
        "sample-interval = \"100ms\"\n\n[roles]\ndrivers = [\"local\"]",
        "wire = { interface = \"e\", addresses = \"192.0.2.9-192.0.2.20/24\" }\n\
         [hosts.c]\nfar = { host = \"db7\", address = \"192.0.2.20\" }\n[roles]\nservices = \"c\"",
        "roles.services",
        "has the address 192.0.2.20, and that is one of the lab's own",
    ),
    ("[cases.idle]", "[cases.idle_]", "cases.idle_", "it has '_' in it"),
    ("label = \"idle host\"", "lable = \"idle host\"", "cases.idle.lable", "did you mean `label`?"),
    ("workload = \"rr\"", "workload = \"rt\"", "cases.idle.workload", "did you mean `rr`?"),
    ("workload = \"rr\"\n", "", "cases.idle.workload", "has no `workload`"),
    ("request = \"128B\"", "request = \"128\"", "cases.idle.parameters.request", "is not a size"),
    ("request = \"128B\"", "reqest = \"128B\"", "cases.idle.parameters.reqest", "did you mean `request`?"),
    ("closed = { clients = 2", "close = { clients = 2", "cases.idle.load.close", "did you mean `closed`?"),
    ("clients = 2", "clients = 0", "cases.idle.load.closed.clients", "whole number from 1"),
    ("clients = 2, ", "", "cases.idle.load.closed.clients", "has no `clients`"),
    ("think-time = \"1ms\"", "think-time = 1", "cases.idle.load.closed.think-time", "length of time"),
    (
        "load = { closed = { clients = 2, think-time = \"1ms\" } }",
        "load = {}",
        "cases.idle.load",
        "neither `closed` nor `open`",
    ),
    (
        "response_time_p99_s",
        "response_time_p9_s",
        "cases.idle.qos.response_time_p9_s",
        "did you mean `response_time_p99_s`?",
    ),
    ("response_time_p99_s", "goodput_bits", "cases.idle.qos.goodput_bits", "is no metric that `rr` yields"),
    (
        "response_time_p99_s = \"5ms\"",
        "response_time_p99_s = 5",
        "cases.idle.qos.response_time_p99_s",
        "length of time",
    ),
    ("throughput_ops = \"100/s\"", "throughput_ops = \"100\"", "cases.idle.qos.throughput_ops", "must be a rate"),
    ("goodput_bits = \"1Gbit/s\"", "goodput_bits = \"1GB/s\"", "cases.bulk.qos.goodput_bits", "must be a bit rate"),
    ("operations = 10", "operations = \"10\"", "cases.floor.qos.operations", "must be a number"),
    ("rate = \"90/min\"", "rate = 90", "cases.busy.loads.low.open.rate", "must be a rate"),
    ("rate = \"90/min\"", "rate = \"0/s\"", "cases.busy.loads.low.open.rate", "must be a rate"),
    ("connections = 4", "connections = 0", "cases.busy.loads.low.open.connections", "whole number from 1"),
    (
        "arrivals = \"uniform\"",
        "arrivals = \"unifrom\"",
        "cases.busy.loads.low.open.arrivals",
        "did you mean `uniform`?",
    ),
    ("loads.high", "loads.HIGH", "cases.busy.loads.HIGH", "it has 'H' in it"),
    ("busy-target = true", "load = { closed = { clients = 1 } }", "cases.busy.loads", "cannot stand beside `load`"),
    ("busy-target = true", "busy-target = 1", "cases.busy.busy-target", "`true` or `false`"),
    ("count = 6", "count = 0", "cases.busy.neighbours.count", "leave `neighbours` out"),
    ("count = 6, ", "", "cases.busy.neighbours.count", "has no `count`"),
    ("cpus = 4", "cpus = \"4\"", "cases.busy.neighbours.cpus", "whole number"),
    ("neighbours = {", "neighbors = {", "cases.busy.neighbors", "did you mean `neighbours`?"),
    ("guest = { cpus = 2 }", "guest = { cpu = 2 }", "cases.busy.guest.cpu", "did you mean `cpus`?"),
    (
        "guest = { cpus = 2 }",
        "guest = { cpus = 2, seccomp = \"none\" }",
        "cases.busy.guest.seccomp",
        "choices: `default`, `off`",
    ),
    (
        "phases = { steady-state = \"5s\" }",
        "phases = { duration = \"5s\" }",
        "cases.busy.phases.duration",
        "fields here: `warm-up`",
    ),
    ("phases = { steady-state = \"5s\" }", "steady-state = \"5s\"", "cases.busy.steady-state", "stands in `[phases]`"),
    (
        "workload = \"stream\"",
        "workload = \"stream\"\nload = { open = { rate = \"1/s\", connections = 1 } }",
        "cases.bulk.load.open",
        "bulk data has no arrivals",
    ),
];

#[test]
fn each_field_wrong_in_turn_is_named_with_its_line_and_its_remedy() {
    assert_each_is_refused(GOOD, WRONG, &["cases.busy.loads", "arms.native-again"]);
}

#[test]
fn all_problems_of_a_file_are_reported_at_once_in_the_order_of_the_file() {
    let mut text = GOOD.to_owned();
    let slips = ["blocks = 3", "memory = \"256MiB\"", "mtu = 9000", "workload = \"stream\"", "count = 6"];
    for good in slips {
        let (key, _) = good.split_once(" = ").unwrap();
        text = text.replacen(good, &format!("{key} = []"), 1);
    }
    let error = parse("bad.toml", &text, &Fake).unwrap_err();
    let fields: Vec<String> = error.problems().iter().map(|problem| problem.path.join(".")).collect();
    assert_eq!(
        fields,
        ["blocks", "guest.memory", "lab.mtu", "cases.busy.neighbours.count", "cases.bulk.workload"],
        "{}",
        error.render(false)
    );
}

#[test]
fn a_study_for_a_newer_tare_says_only_that() {
    let text = GOOD.replacen("schema = 1", "schema = 3\nfuture = true", 1);
    let error = parse("new.toml", &text, &Fake).unwrap_err();
    assert_eq!(error.problems().len(), 1, "{}", error.render(false));
}

#[test]
fn nothing_to_compare_and_nothing_to_measure() {
    let text = "schema = 1\nname = \"x\"\nquestion = \"?\"\nbaseline = \"a\"\nblocks = 2\n[arms]\n[cases]\n";
    let error = parse("bare.toml", text, &Fake).unwrap_err();
    let said: Vec<&str> = error.problems().iter().map(|problem| problem.message.as_str()).collect();
    assert_eq!(said, ["`arms` names nothing", "`cases` names nothing"]);
}

fn rendered(name: &str, text: &str) -> String {
    parse(name, text, &Fake).unwrap_err().render(false)
}

#[test]
fn errors_read_well() {
    let with = |good: &str, bad: &str| rendered("study.toml", &GOOD.replacen(good, bad, 1));
    insta::assert_snapshot!("unknown_field", with("steady-state = \"2s\"", "steady-stat = \"2s\""));
    insta::assert_snapshot!("wrong_unit", with("memory = \"256MiB\"", "memory = \"256M\""));
    insta::assert_snapshot!("bare_number", with("warm-up = \"300ms\"", "warm-up = 300"));
    insta::assert_snapshot!("missing_field", with("question = \"Is every field read?\"\n", ""));
    insta::assert_snapshot!("not_an_arm", with("baseline = \"native\"", "baseline = \"runk\""));
    insta::assert_snapshot!("platform_option", with("runtime = \"runc\"", "runtimes = \"runc\""));
    insta::assert_snapshot!("newer", with("schema = 1", "schema = 9"));
    insta::assert_snapshot!(
        "two_at_once",
        rendered(
            "study.toml",
            &GOOD.replace("cpus = 1\n", "cpus = 0\n").replace("\"1GiB\"", "1").replace("count = 6", "count = 0")
        )
    );
    insta::assert_snapshot!("unquoted", with("platform = \"native\"", "platform = native"));
    insta::assert_snapshot!("unquoted_quantity", with("warm-up = \"300ms\"", "warm-up = 300ms"));
    insta::assert_snapshot!("twice", with("[arms.runc]", "[arms.native]"));
    insta::assert_snapshot!("unclosed", with("options = { runtime = \"runc\" }", "options = { runtime = \"runc"));
}

#[test]
fn colour_adds_nothing_but_colour() {
    let error = parse("study.toml", &GOOD.replacen("mtu = 9000", "mtu = 9", 1), &Fake).unwrap_err();
    let (plain, coloured) = (error.render(false), error.render(true));
    assert!(!plain.contains('\u{1b}') && coloured.contains('\u{1b}'));
    let mut stripped = String::new();
    let mut rest = coloured.as_str();
    while let Some((before, after)) = rest.split_once("\u{1b}[") {
        stripped.push_str(before);
        rest = after.split_once('m').unwrap().1;
    }
    stripped.push_str(rest);
    assert_eq!(stripped, plain);
}

#[test]
fn a_file_of_many_problems_shows_the_first_and_counts_the_rest() {
    let text: String = (0..50).map(|n| format!("x{n} = {n}\n")).collect();
    let error = parse("noise.toml", &text, &Fake).unwrap_err();
    assert!(error.problems().len() > 50);
    assert!(error.to_string().ends_with("errors, the first 20 of them"), "{error}");
}

#[test]
fn several_guests_or_drivers_only_where_the_workload_can_have_them() {
    let of = |case: &str| {
        let text = GOOD.replacen("workload = \"stream\"\nguests = 1\ndrivers = 1", case, 1);
        assert_ne!(text, GOOD);
        let text = text.replace("qos = { goodput_bits = \"1Gbit/s\" }\n", "");
        match parse("several.toml", &text, &Fake) {
            Ok(loaded) => Ok(loaded.study.cases[3].clone()),
            Err(error) => Err(error.problems().to_vec()),
        }
    };
    let store = of("workload = \"store\"\nguests = 256\ndrivers = 64").unwrap();
    assert_eq!(store.load.guests(), Guests { count: 256, drivers: 64 });
    for (case, field, says) in [
        ("workload = \"stream\"\nguests = 2", "guests", "is 2, but `stream` as it is set here measures one guest"),
        ("workload = \"stream\"\ndrivers = 2", "drivers", "is 2, but `stream`"),
        ("workload = \"store\"\nguests = 0", "guests", "from 1 to 256"),
        ("workload = \"store\"\nguests = 257", "guests", "from 1 to 256"),
        ("workload = \"store\"\ndrivers = 65", "drivers", "from 1 to 64"),
        ("workload = \"store\"\ndrivers = \"two\"", "drivers", "whole number"),
        ("workload = \"store\"\nguest-count = 2", "guest-count", "is not a field"),
    ] {
        let problems = of(case).expect_err(case);
        assert_eq!(problems.len(), 1, "{problems:?}");
        assert_eq!(problems[0].path, ["cases", "bulk", field]);
        assert!(problems[0].message.contains(says), "{}", problems[0].message);
    }
    let help = of("workload = \"stream\"\nguests = 2").expect_err("refused")[0].help.clone().unwrap();
    assert!(help.contains("leave `guests` out") && help.contains("`store`"), "{help}");
}

#[test]
fn no_rate_bounds_what_has_no_bridge() {
    let wire = "wire = { interface = \"e\", addresses = \"10.0.0.1-10.0.0.9/24\", attach = \"macvlan\" }";
    let lab = format!("[lab]\nlink-rate = \"1Gbit/s\"\n{wire}\n[arms.native]");
    let text = super::cpu_target::GOOD.replacen("[arms.native]", &lab, 1);
    let error = parse("bad.toml", &text, &Fake).unwrap_err().render(false);
    assert!(error.contains("lab.link-rate") && error.contains("the card has a rate of its own"), "{error}");
    assert!(parse("good.toml", &text.replace("link-rate = \"1Gbit/s\"\n", ""), &Fake).is_ok());
}
