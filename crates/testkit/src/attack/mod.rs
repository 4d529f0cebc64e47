//! Input made to do harm, and a watch over the program that reads it.
//!
//! Generators are seeded, so that a case that was found once is made again by its number.

pub mod folders;
pub mod imports;
pub mod studies;
mod sys;

use std::io::Read;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Numbers that are the same for the same seed (SplitMix64).
struct Chance(u64);

impl Chance {
    const fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    const fn below(&mut self, most: usize) -> usize {
        (self.next() % most as u64) as usize
    }

    fn one_of<T: Clone>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())].clone()
    }
}

/// The programs that a command runs beside itself, in order, with all that it starts; its output is thrown away. `None` where this
/// process may not follow others.
///
/// # Errors
/// When it cannot be started, or does not end within `limit`.
pub fn programs_run_by(mut command: Command, limit: Duration) -> std::io::Result<Option<Vec<String>>> {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    // Only the thread that started it follows it.
    let thread = std::thread::spawn(move || sys::programs_run_by(&mut command, limit));
    thread.join().unwrap_or_else(|_| Err(std::io::Error::other("the watch failed")))
}

/// What a program did that was given hostile input.
#[derive(Debug)]
pub struct Observed {
    /// Its exit code; `None` when a signal ended it.
    pub code: Option<i32>,
    /// What it printed on standard output.
    pub stdout: String,
    /// What it printed on standard error.
    pub stderr: String,
    /// How long it took, or the limit when it did not end by itself.
    pub wall: Duration,
    /// Whether it was killed because it did not end within the limit.
    pub hung: bool,
    /// The most memory that it had resident, bytes, its children's apart.
    pub peak_bytes: u64,
}

impl Observed {
    /// Whether it panicked, or was ended by a signal that it did not get from the watch.
    pub fn crashed(&self) -> bool {
        !self.hung && (self.code.is_none() || self.code == Some(101) || self.stderr.contains("panicked at"))
    }

    /// What it printed that could command a terminal or turn the direction of writing.
    pub fn unfit(&self) -> Vec<char> {
        self.stdout.chars().chain(self.stderr.chars()).filter(|&c| is_unfit(c)).collect()
    }
}

/// Control characters other than line feeds and tabs, and the signs that change the direction of writing (UAX #9).
pub fn is_unfit(c: char) -> bool {
    let turns = matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    turns || (c.is_control() && c != '\n' && c != '\t')
}

/// Runs a command to its end, at most for `limit`; then it is killed.
///
/// # Errors
/// When it cannot be started or waited for.
pub fn observe(command: &mut Command, limit: Duration) -> std::io::Result<Observed> {
    let began = Instant::now();
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let (stdout, stderr) = (follow(child.stdout.take()), follow(child.stderr.take()));
    let (mut hung, mut ended) = (false, sys::ended(&child)?);
    while ended.is_none() {
        if !hung && began.elapsed() >= limit {
            hung = true;
            child.kill()?;
        }
        std::thread::sleep(Duration::from_millis(1));
        ended = sys::ended(&child)?;
    }
    let wall = began.elapsed();
    let (code, peak_bytes) = ended.map_or((None, 0), |ended| (ended.code, ended.peak_bytes));
    let text = |thread: std::thread::JoinHandle<Vec<u8>>| {
        String::from_utf8_lossy(&thread.join().unwrap_or_default()).into_owned()
    };
    Ok(Observed { code, stdout: text(stdout), stderr: text(stderr), wall, hung, peak_bytes })
}

fn follow(stream: Option<impl Read + Send + 'static>) -> std::thread::JoinHandle<Vec<u8>> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        // What came until an error is kept.
        let _ = stream.map(|mut stream| stream.read_to_end(&mut bytes));
        bytes
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_program_does_is_seen() {
        let script = "head -c 50000000 /dev/zero | tail -c 50000000 >/dev/null; printf 'a\\033[2J'; echo b >&2; exit 3";
        let seen = observe(Command::new("sh").args(["-c", script]), Duration::from_secs(60)).unwrap();
        assert_eq!((seen.code, seen.hung, seen.crashed()), (Some(3), false, false));
        assert_eq!((seen.unfit(), seen.stderr.as_str()), (vec!['\u{1b}'], "b\n"));
        assert!(seen.peak_bytes > 100_000, "{}", seen.peak_bytes);
    }

    #[test]
    fn the_programs_that_a_program_runs_are_seen() {
        let mut shell = Command::new("sh");
        shell.args(["-c", "(true; /bin/echo x | cat) & wait; exec sleep 0"]);
        let Some(seen) = programs_run_by(shell, Duration::from_secs(60)).unwrap() else { return };
        assert_eq!(seen.len(), 3, "{seen:?}");
        let quiet = programs_run_by(Command::new("true"), Duration::from_secs(60)).unwrap();
        assert_eq!(quiet, Some(Vec::new()));
        let mut hangs = Command::new("sleep");
        hangs.arg("100");
        assert!(programs_run_by(hangs, Duration::from_millis(200)).is_err());
    }

    #[test]
    fn a_program_that_hangs_or_dies_is_seen_as_such() {
        let seen = observe(Command::new("sleep").arg("100"), Duration::from_millis(100)).unwrap();
        assert!(seen.hung && !seen.crashed());
        let seen = observe(Command::new("sh").args(["-c", "kill -SEGV $$"]), Duration::from_secs(60)).unwrap();
        assert!(seen.crashed() && !seen.hung);
    }
}
