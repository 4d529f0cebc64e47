//! Disturbed runs, and others at rest: are the flags of the causes raised?

use std::process::Child;
use std::time::Duration;

use rustix::process::Signal;
use tare_analysis::Share;
use tare_model::flag;
use tare_record::RunFolder;

use super::bar::Bar;
use super::ground::{Ground, Ran, Run, signal};
use super::plant::{Companion, Plant, wait_for_load};
use super::study;
use crate::exit::Failure;

/// How often each cause is planted in the short and in the long form; as many runs as of all causes together are at rest.
const TIMES: (u32, u32) = (2, 20);
/// How often a cause may go unseen, and how often one may be seen that is not there.
const UNSEEN: f64 = 0.05;
const FALSE: f64 = 0.02;
/// How long a controller stands still, and how long after load has begun.
const STILL: Duration = Duration::from_millis(700);
const INTO_LOAD: Duration = Duration::from_millis(250);
/// How long a run may take until it offers load.
const START: Duration = Duration::from_secs(60);

/// Something that goes wrong around a run.
struct Cause {
    name: &'static str,
    /// The case that is run.
    case: &'static str,
    /// The flags by any of which it is known.
    flags: &'static [&'static str],
    act: Act,
}

/// What is done to a run.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Act {
    /// Nothing: the case does it.
    Nothing,
    /// A program computes beside it.
    Load,
    /// Its controller, which samples, is stopped for a while.
    Still,
    /// Another run is alive.
    Another,
}

/// What can be planted on any host.
const CAUSES: [Cause; 4] = [
    Cause { name: "a busy program", case: "plain", flags: &["foreign-load"], act: Act::Load },
    Cause { name: "a controller that stands still", case: "plain", flags: &["lost-samples"], act: Act::Still },
    Cause { name: "another run", case: "plain", flags: &["alongside"], act: Act::Another },
    Cause {
        name: "a driver at its limit",
        case: "driver",
        flags: &[flag::DRIVER_SATURATED, flag::DRIVER_STARVED],
        act: Act::Nothing,
    },
];
/// What the plain case could suffer from by itself.
const AT_REST: &str = "plain";
/// What cannot be planted here, and why.
const NOT_PLANTED: &str = "not planted: steal (the machine underneath would have to take part), dropped packets, swapped pages, used-up CPU quotas (guests have \
    no more CPUs than their quota on small hosts), clocks that jump (there is one host), neighbours that end (they are no part of these runs)";

/// The flags of a run's trials.
fn flags(ran: &Ran) -> Result<Vec<String>, String> {
    ran.findings()?;
    let trials = RunFolder::open(&ran.folder).and_then(|folder| folder.trials());
    let trials = trials.map_err(|error| error.to_string())?;
    Ok(trials.into_iter().flat_map(|trial| trial.flags).map(|flag| flag.kind).collect())
}

/// Whether flags are raised where their causes are, and nowhere else.
pub fn bars(ground: &Ground<'_>) -> Result<Vec<Bar>, Failure> {
    let (mut unseen, mut false_ones) = (Share::default(), Share::default());
    let (mut notes, mut seen) = (vec![NOT_PLANTED.to_owned()], Vec::new());
    for time in ground.numbered(TIMES) {
        for (n, cause) in CAUSES.iter().enumerate().filter(|_| ground.goes_on()) {
            let alongside = if cause.act == Act::Another { &["--alongside"][..] } else { &[] };
            let planted = begin(ground, &format!("planted-{}-{time}", n + 1), cause.case)?.with(alongside);
            let ran = disturbed(ground, &planted, cause.act, time)?;
            if ground.is_stopped() {
                break;
            }
            match ran.map_or_else(|| Err(format!("{} could not be planted", cause.name)), |ran| flags(&ran)) {
                Ok(flags) => {
                    let misses = !flags.iter().any(|flag| cause.flags.contains(&flag.as_str()));
                    unseen.add(misses);
                    if misses {
                        notes.push(format!("{} was not seen in planted-{}-{time}: {flags:?}", cause.name, n + 1));
                    }
                }
                Err(why) => notes.push(why),
            }
            let name = format!("at-rest-{}-{time}", n + 1);
            match flags(&begin(ground, &name, AT_REST)?.run()?) {
                Ok(flags) => {
                    let known = |flag: &&String| CAUSES.iter().any(|cause| cause.flags.contains(&flag.as_str()));
                    let wrong: Vec<&String> = flags.iter().filter(known).collect();
                    false_ones.add(!wrong.is_empty());
                    if !wrong.is_empty() {
                        seen.push(format!("{name}: {wrong:?}"));
                    }
                }
                Err(why) => seen.push(why),
            }
        }
    }
    let unit = "runs";
    Ok(vec![
        Bar::counted(
            "planted-seen",
            "What disturbs a run is flagged, with the right cause, in at least 95 of 100",
            (UNSEEN, unit),
            unseen,
            notes,
        ),
        Bar::counted(
            "planted-false",
            "A run at rest has a flag of these causes in at most 2 of 100; a host that is not at rest has them rightly",
            (FALSE, unit),
            false_ones,
            seen,
        ),
    ])
}

fn begin<'g>(ground: &'g Ground<'_>, name: &str, case: &str) -> Result<Run<'g>, Failure> {
    Ok(ground.study(name, study::PLANTED)?.with(&["--only-case", case]))
}

/// Runs it and does something to it meanwhile; `None` if that could not be done.
fn disturbed(ground: &Ground<'_>, planted: &Run<'_>, act: Act, time: u32) -> Result<Option<Ran>, Failure> {
    let offers_load =
        |run: &Run<'_>, child: &mut Child| wait_for_load(&run.folder(), child, START, || ground.is_stopped());
    match act {
        Act::Nothing => planted.run().map(Some),
        Act::Load => {
            let _busy = Plant::load();
            planted.run().map(Some)
        }
        Act::Still => {
            let mut child = planted.begin()?;
            let there = offers_load(planted, &mut child);
            if there {
                std::thread::sleep(INTO_LOAD);
                signal(&child, Signal::STOP);
                std::thread::sleep(STILL);
                signal(&child, Signal::CONT);
            }
            planted.end(child).map(|ran| there.then_some(ran))
        }
        Act::Another => {
            let other = begin(ground, &format!("another-{time}"), AT_REST)?.with(&["--blocks", "30", "--alongside"]);
            let mut beside = Companion(other.begin()?);
            let there = offers_load(&other, &mut beside.0);
            planted.run().map(|ran| there.then_some(ran))
        }
    }
}
