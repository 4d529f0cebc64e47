//! The text of the study that a command line of `tare exec` stands for, and the rule by which its size follows from the trial run.

use std::fmt::Write as _;

use serde_json::Value;
use tare_model::Span;

use crate::args::ExecArguments;
use crate::exit::{Exit, Failure};

/// Runs of a short command in a block come to about this long, seconds.
const RUNS_S: f64 = 0.25;
/// Most runs in a block that are chosen here.
const MOST_RUNS: f64 = 10.0;
/// A command that takes this long or longer has no unmeasured runs of its own in each guest, seconds.
const WARMED_BELOW_S: f64 = 1.0;
/// A command that takes this long or longer is not run twice on the baseline, seconds.
const FLOOR_BELOW_S: f64 = 10.0;
/// Between two runs, seconds: the gap of the workload.
const GAP_S: f64 = 0.01;
/// How long a run is planned to take where nobody says, seconds.
const MAX_TIME_S: f64 = 300.0;
/// Blocks where they fit: from here on intervals hold what they state even where neighbouring blocks are alike.
const BLOCKS: u32 = 12;
/// Fewest blocks whose interval needs no assumption about the noise.
const FEWEST: u32 = 6;
/// Fewest blocks that are worth a run.
const LEAST: u32 = 3;
/// Most blocks of a run that ends by precision.
const MOST: u32 = 240;

/// An arm as the command line names it.
#[derive(Debug, Clone, PartialEq)]
pub struct NamedArm {
    /// Its id in the study.
    pub id: String,
    /// As the user wrote it.
    pub label: String,
    /// Platform, by its name in the registry.
    pub platform: &'static str,
    /// The platform's options.
    pub options: Value,
}

/// How long things take, from the trial run; seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Took {
    /// One run of the command on the slowest arm.
    pub command_s: f64,
    /// Of a block of all arms, what is no run of the command: guests that start and end.
    pub around_s: f64,
}

/// How often what is run.
#[derive(Debug, Clone, PartialEq)]
pub struct Size {
    /// Runs of each arm in a block.
    pub runs: u32,
    /// Unmeasured runs in each guest.
    pub warm_up: u32,
    /// Whether the baseline runs twice.
    pub noise_floor: bool,
    /// How long a command is expected to take, seconds.
    pub command_s: f64,
    /// Blocks: what stands behind `blocks =`.
    pub blocks: String,
}

impl Size {
    /// Of the trial run: every arm once.
    pub fn trial() -> Self {
        Self { runs: 1, warm_up: 0, noise_floor: false, command_s: 1.0, blocks: "1".to_owned() }
    }

    /// What the trial run suggests and the user says.
    ///
    /// # Errors
    /// When too few blocks fit into the time that the user gives.
    pub fn of(took: Took, arms: usize, asked: &ExecArguments) -> Result<Self, Failure> {
        let command_s = took.command_s.max(1e-3);
        let runs = asked.runs.unwrap_or_else(|| (RUNS_S / command_s).floor().clamp(1.0, MOST_RUNS) as u32);
        let warm_up = asked.warm_up.unwrap_or(u32::from(command_s < WARMED_BELOW_S));
        // A single pair of equal arms shows no spread.
        let noise_floor = !asked.no_noise_floor && asked.blocks != Some(1) && command_s < FLOOR_BELOW_S;
        let each =
            took.around_s / arms.max(1) as f64 + f64::from(runs) * (command_s + GAP_S) + f64::from(warm_up) * command_s;
        let block_s = each * (arms + usize::from(noise_floor)) as f64;
        let blocks = blocks(block_s, asked)?;
        Ok(Self { runs, warm_up, noise_floor, command_s, blocks })
    }
}

/// How many blocks there are, where each takes so many seconds.
fn blocks(block_s: f64, asked: &ExecArguments) -> Result<String, Failure> {
    if let Some(blocks) = asked.blocks {
        return Ok(blocks.to_string());
    }
    let time_s = asked.max_time.map_or(MAX_TIME_S, Span::as_secs_f64);
    // A share of a block is none.
    let fit = (time_s / block_s.max(1e-3)).clamp(0.0, f64::from(MOST)) as u32;
    let least = match (&asked.until, asked.max_time) {
        (Some(_), Some(_)) => FEWEST,
        (Some(_), None) => BLOCKS,
        (None, Some(_)) => LEAST,
        (None, None) => FEWEST,
    };
    if fit < least
        && let Some(given) = asked.max_time
    {
        let needs = f64::from(least) * block_s;
        let message = format!(
            "a block of this command takes about {block_s:.1} s, so {fit} of them fit into --max-time {given}, and {least} are the least \
             that say something; write --max-time {}m, or --blocks N for fewer",
            (needs / 60.0).ceil()
        );
        return Err(Failure::new(message, Exit::Usage));
    }
    let most = fit.max(least);
    Ok(match &asked.until {
        Some(until) => {
            format!("{{ at-least = {}, at-most = {most}, until = {} }}", most.min(BLOCKS), quoted(until))
        }
        None => most.min(BLOCKS).to_string(),
    })
}

/// The text of the study.
pub fn text(arms: &[NamedArm], size: &Size, asked: &ExecArguments) -> String {
    let command = shown(&asked.command);
    let (baseline, others) = arms.split_first().map_or(("", &[][..]), |(first, rest)| (first.id.as_str(), rest));
    let others: Vec<&str> = others.iter().map(|arm| arm.label.as_str()).collect();
    let against = arms.first().map_or("", |arm| arm.label.as_str());
    let question = match others.as_slice() {
        [] => format!("How does `{command}` run on {against}?"),
        [one] => format!("What does {one} cost `{command}`, against {against}?"),
        [first @ .., last] => {
            format!("What do {} and {last} cost `{command}`, against {against}?", first.join(", "))
        }
    };
    let mut text = String::from("# Written by `tare exec`. `tare plan` shows what it does, `tare run` runs it.\n\n");
    let mut line = |name: &str, value: &str| {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{name} = {value}");
    };
    line("schema", "1");
    line("name", &quoted(&name(asked)));
    line("question", &quoted(&question));
    line("baseline", &quoted(baseline));
    line("blocks", &size.blocks);
    line("noise-floor", if size.noise_floor { "true" } else { "false" });
    if let Some(seed) = asked.seed {
        line("seed", &seed.to_string());
    }
    for arm in arms {
        let _ = write!(
            text,
            "\n[arms.{}]\nlabel = {}\nplatform = {}\noptions = {}\n",
            arm.id,
            quoted(&arm.label),
            quoted(arm.platform),
            inline(&arm.options)
        );
    }
    let expected = Span::from_millis(((size.command_s * 1e3).ceil() as u64).max(10));
    let _ = write!(
        text,
        "\n[guest]\ncpus = {}\nmemory = {}\n\n[phases]\nsteady-state = \"{expected}\"    # what a run of the command is expected to take\n",
        asked.cpus,
        quoted(&asked.memory)
    );
    let _ = write!(
        text,
        "\n[cases.command]\nlabel = {}\nworkload = \"exec\"\nturns = {{ rounds = {} }}\n\n[cases.command.parameters]\n{}",
        quoted(&command),
        size.runs,
        parameters(size, asked)
    );
    text
}

/// The parameters of the workload.
fn parameters(size: &Size, asked: &ExecArguments) -> String {
    let argv: Vec<String> = asked.command.iter().map(|argument| quoted(argument)).collect();
    let mut text = format!(
        "command = [{}]\nwarm-up = {}\ntimeout = {}\n",
        argv.join(", "),
        size.warm_up,
        quoted(&asked.timeout.to_string())
    );
    if let Some(directory) = &asked.directory {
        let _ = writeln!(text, "directory = {}", quoted(directory));
    }
    for name in asked.env.iter().collect::<std::collections::BTreeSet<_>>() {
        let _ = writeln!(text, "env.{} = {{ from-env = {} }}", quoted(name), quoted(name));
    }
    let way = asked.metric.as_ref().map(|regex| ("regex", regex, literal(regex)));
    let way = way.or_else(|| asked.json_path.as_ref().map(|path| ("json", path, path.clone())));
    if let Some((way, how, label)) = way {
        let better = if asked.lower_is_better { "lower" } else { "higher" };
        let (how, label, unit) = (quoted(how), quoted(&label), quoted(&asked.unit));
        let _ = writeln!(
            text,
            "metrics.figure = {{ {way} = {how}, label = {label}, unit = {unit}, better = \"{better}\" }}"
        );
    }
    text
}

/// What a regular expression says before its figure, as the figure's name.
fn literal(regex: &str) -> String {
    let before = regex.split('(').next().unwrap_or_default();
    let words = before.trim_matches(|c: char| !c.is_alphanumeric());
    let plain = words.chars().all(|c| c.is_alphanumeric() || " _-/".contains(c));
    if plain && !words.is_empty() { words.to_owned() } else { "figure".to_owned() }
}

/// A command for people, as long as a heading may be.
fn shown(command: &[String]) -> String {
    const LONGEST: usize = 48;
    let line = command.join(" ").split_whitespace().collect::<Vec<_>>().join(" ");
    if line.chars().count() <= LONGEST {
        return line;
    }
    line.chars().take(LONGEST - 3).chain("...".chars()).collect()
}

/// The study's name, after the program.
fn name(asked: &ExecArguments) -> String {
    let program = asked.command.first().map_or("", |program| program.rsplit('/').next().unwrap_or_default());
    format!("exec-{}", slug(program)).trim_end_matches('-').chars().take(30).collect()
}

/// Most characters of an id that is made of a name: a study allows 40, and a number may follow.
const ID_MAX: usize = 32;

/// Lower case letters, digits and `-`, as ids are.
pub fn slug(text: &str) -> String {
    let lower = text.to_lowercase();
    let words = lower.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    let mut id = words.collect::<Vec<_>>().join("-");
    id.truncate(ID_MAX);
    id.trim_end_matches('-').to_owned()
}

fn quoted(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}

fn inline(options: &Value) -> String {
    // What stands in a registry, or a text behind a colon, has no value that TOML has not.
    toml::Value::try_from(options).map_or_else(|_| "{}".to_owned(), |options| options.to_string())
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;
    use serde_json::json;

    use super::*;
    use crate::args::{Arguments, Command};
    use crate::catalog::Registries;

    fn asked(line: &[&str]) -> ExecArguments {
        let all = ["tare", "exec"].iter().chain(line).copied();
        let Command::Exec(arguments) = Arguments::try_parse_from(all).unwrap().command else { panic!("{line:?}") };
        arguments
    }

    fn size(command_s: f64, line: &[&str]) -> Result<Size, Failure> {
        Size::of(Took { command_s, around_s: 1.0 }, 2, &asked(line))
    }

    #[test]
    fn how_often_a_command_runs_follows_from_how_long_it_takes() {
        let of = |command_s| {
            let size = size(command_s, &["--", "x"]).unwrap();
            (size.runs, size.warm_up, size.noise_floor, size.blocks)
        };
        assert_eq!(of(0.001), (10, 1, true, "12".to_owned()));
        assert_eq!(of(0.05), (5, 1, true, "12".to_owned()));
        assert_eq!(of(2.0), (1, 0, true, "12".to_owned()));
        // Six blocks, the fewest, of two arms.
        assert_eq!(of(60.0), (1, 0, false, "6".to_owned()));
        let line = ["--runs", "7", "--warm-up", "3", "--no-noise-floor", "--blocks", "4", "--", "x"];
        let own = size(0.001, &line).unwrap();
        assert_eq!((own.runs, own.warm_up, own.noise_floor, own.blocks.as_str()), (7, 3, false, "4"));
        assert!(!size(0.001, &["--blocks", "1", "--", "x"]).unwrap().noise_floor);
    }

    #[test]
    fn a_time_bounds_the_blocks_and_one_that_is_too_short_is_refused_with_one_that_is_not() {
        // A block takes 3 (0.5 + 1.01) = 4.5 s.
        let of = |line: &[&str]| size(1.0, &[line, &["--", "x"]].concat()).map(|size| size.blocks);
        assert_eq!(of(&["--max-time", "30s"]).unwrap(), "6");
        assert_eq!(of(&["--max-time", "1h"]).unwrap(), "12");
        let until = |least: u32, most: u32| format!("{{ at-least = {least}, at-most = {most}, until = \"2%\" }}");
        assert_eq!(of(&["--until", "2%"]).unwrap(), until(12, 66));
        assert_eq!(of(&["--until", "2%", "--max-time", "40s"]).unwrap(), until(8, 8));
        assert_eq!(of(&["--until", "2%", "--max-time", "10h"]).unwrap(), until(12, MOST));
        let refused = of(&["--max-time", "5s"]).unwrap_err();
        assert!(refused.message.contains("--max-time 1m"), "{refused:?}");
        assert!(of(&["--max-time", "1m"]).is_ok());
    }

    #[test]
    fn every_text_is_a_study_whatever_is_in_the_command() {
        let arm = |id: &str, platform| NamedArm { id: id.into(), label: id.into(), platform, options: json!({}) };
        let arms = [arm("first", "null"), arm("second", "null")];
        let options = ["--lower-is-better", "--metric", "took \"(.*)\" s", "--unit", "s", "--seed", "3"];
        let command = ["--directory", "/a b", "--", "/bin/My Program", "a\"b\\c", "two\nlines", "'''", "{x}", "\t", ""];
        let asked = asked(&[&options[..], &command].concat());
        let text = text(&arms, &Size::of(Took { command_s: 0.1, around_s: 1.0 }, 2, &asked).unwrap(), &asked);
        let study = tare_study::parse("x", &text, &Registries).unwrap_or_else(|error| panic!("{error}\n{text}")).study;
        assert_eq!(study.cases[0].parameters["command"], json!(asked.command));
        assert_eq!((study.name.as_str(), study.seed, study.blocks), ("exec-my-program", 3, 12));
        let figure = &study.cases[0].parameters["metrics"]["figure"];
        assert_eq!((&figure["label"], &figure["better"]), (&json!("took"), &json!("lower")), "{figure}");
    }

    #[test]
    fn a_figure_is_called_what_stands_before_it() {
        let named =
            [("events per second: +([0-9.]+)", "events per second"), ("([0-9]+)", "figure"), ("a.*b (x)", "figure")];
        for (regex, name) in named {
            assert_eq!(literal(regex), name);
        }
        assert_eq!(slug("docker:My/App:1.2"), "docker-my-app-1-2");
    }
}
