//! One run of the application's load, from its start to its result.

use crate::java::spec::{JavaDone, JavaDrive};
use tare_model::Histogram;
use tare_model::drive::{DriveInterval, DriveResult};

use super::answer::{RESULT_LINES, Summary, Times, number};
use super::client::{Answer, Client};
use super::{Application, JavaFault};
use crate::DriverError;
use crate::clock::sleep_until;
use crate::course::{Course, Drive};
use crate::usage::{Usage, run_delay_ns};

/// An edge of the window that is uncertain by more than this part of its length is reported.
const VAGUE: f64 = 0.01;
/// The reason, in [`DriveResult::errors`], of starts that a thread of the application gave up in the window.
const STARTS_DROPPED: &str = "starts dropped: more than 1 s late";

/// A number of operations, and when the application reported it.
#[derive(Debug, Clone, Copy)]
struct Stamp {
    count: u64,
    at_ns: u64,
    round_trip_ns: u64,
}

/// What a run borrows.
struct Run<'a> {
    client: &'a mut Client,
    ask_every_ns: u64,
    course: Course<'a>,
    /// The last number of operations that was reported: the next cannot be smaller.
    last: u64,
    /// At the end of the last interval.
    counted: u64,
    /// The longest that an answer under load took.
    slowest_ns: u64,
    intervals: Vec<DriveInterval>,
}

/// What the window was.
struct Window {
    begin: Stamp,
    end: Stamp,
    used: Usage,
    stopped: u64,
}

impl Drive for Application {
    /// Whatever fails, and a cancel, ends the application's load.
    fn run(mut self: Box<Self>, course: Course<'_>) -> Result<DriveResult, DriverError> {
        let (before, ask_every_ns) = (self.before, self.ask_every_ns);
        let mut run = Run {
            client: &mut self.client,
            ask_every_ns,
            course,
            last: before,
            counted: before,
            slowest_ns: 0,
            intervals: Vec::new(),
        };
        let went = run.go().and_then(|window| {
            let summary = run.result()?;
            let wrong = run.verify()?;
            Ok((window, summary, wrong))
        });
        let intervals = run.intervals;
        match went {
            Ok((window, summary, wrong)) => {
                let fault = |fault| self.client.fault(fault);
                let mut done = summary.done(&self.ready).map_err(fault)?;
                done.wrong = wrong.or_else(|| sums_up(&summary, window.stopped));
                let result = result(window, summary, &done, before, intervals, self.granted).map_err(fault)?;
                Ok(result.with_outcome::<JavaDrive>(&done)?)
            }
            Err(error) => {
                self.client.leave();
                Err(error)
            }
        }
    }
}

impl Run<'_> {
    /// All phases, until every thread of the application has stopped.
    fn go(&mut self) -> Result<Window, DriverError> {
        let timeline = self.course.timeline.clone();
        self.wait(timeline.start)?;
        self.client.order("start", "`ok`", self.course.cancel)?;
        self.count_until(timeline.steady_start)?;
        let begin = self.stamp("begin")?;
        let entered = Usage::of_this_thread();
        self.count_until(timeline.steady_end)?;
        let used = Usage::of_this_thread().since(entered);
        let end = self.stamp("end")?;
        self.count_until(timeline.load_end)?;
        let stop = self.client.ask("stop", self.course.cancel)?;
        let stopped = self.number(&stop, "stopped", "`stopped` and a number")?;
        self.interval(stopped, stop.at_ns());
        Ok(Window { begin, end, used, stopped })
    }

    fn wait(&self, at_ns: u64) -> Result<(), DriverError> {
        if sleep_until(at_ns, self.course.cancel) { Ok(()) } else { Err(DriverError::Cancelled) }
    }

    /// Asks for the number of operations again and again until a moment, and returns at it.
    fn count_until(&mut self, until: u64) -> Result<(), DriverError> {
        let every = self.ask_every_ns;
        let mut due = self.course.timeline.start.saturating_add(every);
        loop {
            let passed = crate::clock::now_ns().saturating_sub(self.course.timeline.start) / every;
            due = due.max(self.course.timeline.start.saturating_add((passed + 1).saturating_mul(every)));
            // A question that is under way at the edge of a phase would delay what is asked there.
            if due.saturating_add(2 * self.slowest_ns) >= until {
                return self.wait(until);
            }
            self.wait(due)?;
            let Stamp { count, at_ns, .. } = self.stamp("count")?;
            self.interval(count, at_ns);
        }
    }

    /// Asks for the number of operations.
    fn stamp(&mut self, question: &str) -> Result<Stamp, DriverError> {
        let answer = self.client.ask(question, self.course.cancel)?;
        let count = self.number(&answer, "count", "`count` and a number")?;
        let round_trip_ns = answer.round_trip_ns();
        self.slowest_ns = self.slowest_ns.max(round_trip_ns);
        Ok(Stamp { count, at_ns: answer.at_ns(), round_trip_ns })
    }

    fn number(&mut self, answer: &Answer, word: &str, due: &'static str) -> Result<u64, DriverError> {
        let count = number(&answer.line, word).ok_or_else(|| self.client.unfit(&answer.line, due))?;
        if count < self.last {
            return Err(self.client.unfit(&answer.line, "a number of operations no smaller than the one before"));
        }
        self.last = count;
        Ok(count)
    }

    fn interval(&mut self, count: u64, end_ns: u64) {
        let interval = DriveInterval { end_ns, operations: count - self.counted, bytes: 0, response_ns: 0 };
        self.counted = count;
        (self.course.progress)(interval);
        self.intervals.push(interval);
    }

    fn result(&mut self) -> Result<Summary, DriverError> {
        let mut summary = Summary::default();
        self.client.ask_lines("result", RESULT_LINES, self.course.cancel, |line| summary.take(line))?;
        Ok(summary)
    }

    /// What is wrong with the application's data, if it is.
    fn verify(&mut self) -> Result<Option<String>, DriverError> {
        let answer = self.client.ask("verify", self.course.cancel)?;
        match answer.line.strip_prefix(b"wrong") {
            None if answer.line == b"right" => Ok(None),
            Some(reason) => Ok(Some(reason.trim_ascii().escape_ascii().to_string())),
            None => Err(self.client.unfit(&answer.line, "`right` or `wrong` and a reason")),
        }
    }
}

/// Whether the operations by kind are those that were counted, which nobody but the driver compares.
fn sums_up(summary: &Summary, stopped: u64) -> Option<String> {
    let sum: u128 = summary.transactions.values().copied().map(u128::from).sum();
    let differs = sum != u128::from(stopped);
    differs.then(|| format!("its transactions add up to {sum}, and it counts {stopped} operations"))
}

/// What of the edges of the window is not known as well as it should be.
fn vague(name: &str, edge: &Stamp, window_ns: u64) -> Option<(String, String)> {
    let share = edge.round_trip_ns as f64 / window_ns.max(1) as f64;
    let value = format!("{:.1} ms, {:.1} % of the window", edge.round_trip_ns as f64 / 1e6, share * 100.0);
    (share > VAGUE).then(|| (format!("window_{name}_answered_after"), value))
}

fn result(
    window: Window,
    summary: Summary,
    done: &JavaDone,
    before: u64,
    intervals: Vec<DriveInterval>,
    mut granted: Vec<(String, String)>,
) -> Result<DriveResult, JavaFault> {
    let Window { begin, end, used, stopped } = window;
    let window_ns = end.at_ns.saturating_sub(begin.at_ns);
    granted.extend(vague("begin", &begin, window_ns));
    granted.extend(vague("end", &end, window_ns));
    let dropped = summary.value("dropped")?;
    let late = (dropped > 0).then(|| (STARTS_DROPPED.to_owned(), dropped));
    // What was never started is in no histogram of the application's.
    let with_dropped =
        |times: Times| -> Result<Histogram, JavaFault> { Ok(Histogram { failed: dropped, ..times.finish()? }) };
    Ok(DriveResult {
        steady_start_ns: begin.at_ns,
        steady_end_ns: end.at_ns,
        operations: end.count - begin.count,
        answered_total: stopped - before,
        errors: late.into_iter().collect(),
        response: with_dropped(summary.response)?,
        service: with_dropped(summary.service)?,
        lateness: summary.lateness.finish()?,
        intervals,
        cpu_user_ns: used.cpu.user_ns,
        cpu_system_ns: used.cpu.system_ns,
        run_delay_ns: run_delay_ns().map(|_| used.run_delay_ns),
        threads: 1,
        granted,
        verified: done.wrong.is_none(),
        ..DriveResult::default()
    })
}
