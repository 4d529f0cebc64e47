//! The application's answers, read.

use std::collections::BTreeMap;
use std::str::{FromStr, SplitAsciiWhitespace};

use crate::java::spec::JavaDone;
use tare_model::Histogram;
use tare_model::histogram::Bin;

use super::fault::JavaFault;

/// Most lines of a result: three histograms of nanoseconds with three digits have fewer than 40,000 bins each.
pub(super) const RESULT_LINES: usize = 200_000;
/// Most transactions and values that are kept, and the longest name of one.
const NAMES: usize = 64;
/// Most operations in a histogram: none has so many, and sums of so many do not overflow.
const COUNT_MAX: u64 = 1 << 50;

/// What a `ready` line tells.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Ready {
    pub groups: u32,
    pub live_heap_bytes: u64,
    /// The rest, as name and value.
    pub facts: Vec<(String, String)>,
}

impl Ready {
    /// Reads `ready 1 groups=6 live_heap_bytes=N heap_max_bytes=N java=17.0.9 collector=Serial pid=N`.
    pub fn parse(line: &[u8]) -> Option<Self> {
        let mut ready = Self::default();
        let mut words = words(line)?;
        if (words.next(), words.next()) != (Some("ready"), Some("1")) {
            return None;
        }
        for (name, value) in words.map_while(|word| word.split_once('=')).take(NAMES) {
            match name {
                "groups" => ready.groups = value.parse().ok()?,
                "live_heap_bytes" => ready.live_heap_bytes = value.parse().ok()?,
                // It changes with each start and says nothing.
                "pid" => {}
                _ => ready.facts.push((format!("application_{name}"), value.to_owned())),
            }
        }
        (ready.groups > 0).then_some(ready)
    }
}

/// Reads a line of a word and a number, such as `count 12`.
pub(super) fn number(line: &[u8], word: &str) -> Option<u64> {
    let mut words = words(line)?;
    let (first, value, more) = (words.next()?, words.next()?, words.next());
    if first == word && more.is_none() { value.parse().ok() } else { None }
}

fn words(line: &[u8]) -> Option<SplitAsciiWhitespace<'_>> {
    let fits = line.iter().all(|byte| matches!(byte, b' '..=b'~'));
    std::str::from_utf8(line).ok().filter(|_| fits).map(str::split_ascii_whitespace)
}

/// What a `result` tells.
#[derive(Debug, Default)]
pub(super) struct Summary {
    pub response: Times,
    pub service: Times,
    pub lateness: Times,
    pub transactions: BTreeMap<String, u64>,
    values: BTreeMap<String, u64>,
}

/// A histogram as its lines come.
#[derive(Debug, Default)]
pub(super) struct Times {
    bins: Vec<Bin>,
    count: u64,
    stat: Option<(u64, u64, u128)>,
}

impl Summary {
    /// Takes in one line.
    pub fn take(&mut self, line: &[u8]) -> Result<(), JavaFault> {
        self.read(line).ok_or_else(|| JavaFault::unfit(line, "a line of its result"))
    }

    fn read(&mut self, line: &[u8]) -> Option<()> {
        let mut words = words(line)?;
        match words.next()? {
            "bin" => {
                let bin = |words: &mut SplitAsciiWhitespace<'_>| -> Option<Bin> {
                    Some(Bin { low: next(words)?, high: next(words)?, count: next(words)? })
                };
                self.times(words.next()?)?.add(bin(&mut words)?)?;
            }
            "stat" => {
                let times = self.times(words.next()?)?;
                times.stat = Some((next(&mut words)?, next(&mut words)?, next(&mut words)?));
            }
            "transaction" => keep(&mut self.transactions, words.next()?, next(&mut words)?)?,
            "value" => keep(&mut self.values, words.next()?, next(&mut words)?)?,
            _ => return None,
        }
        words.next().is_none().then_some(())
    }

    fn times(&mut self, name: &str) -> Option<&mut Times> {
        match name {
            "response" => Some(&mut self.response),
            "service" => Some(&mut self.service),
            "lateness" => Some(&mut self.lateness),
            _ => None,
        }
    }

    /// A value that the result must contain.
    pub fn value(&self, name: &'static str) -> Result<u64, JavaFault> {
        let unfit = || JavaFault::unfit(b"a result without a value", name);
        self.values.get(name).copied().ok_or_else(unfit)
    }

    /// What is reported of the application, without its histograms.
    pub fn done(&self, ready: &Ready) -> Result<JavaDone, JavaFault> {
        Ok(JavaDone {
            transactions: self.transactions.clone(),
            groups: ready.groups,
            live_heap_bytes: ready.live_heap_bytes,
            heap_used_bytes: self.value("heap_used_bytes")?,
            heap_committed_bytes: self.value("heap_committed_bytes")?,
            allocated_bytes: self.value("allocated_bytes")?,
            collections: self.value("collections")?,
            collection_ms: self.value("collection_ms")?,
            cpu_ns: self.value("cpu_ns")?,
            wrong: None,
        })
    }
}

impl Times {
    /// Bins come in ascending order and do not overlap.
    fn add(&mut self, bin: Bin) -> Option<()> {
        let ascends = self.bins.last().is_none_or(|last| last.high < bin.low);
        let count = self.count.checked_add(bin.count).filter(|&count| count <= COUNT_MAX)?;
        if !ascends || bin.low > bin.high || bin.count == 0 {
            return None;
        }
        self.count = count;
        self.bins.push(bin);
        Some(())
    }

    /// The histogram, if the lines about it agree with each other.
    pub fn finish(self) -> Result<Histogram, JavaFault> {
        let unfit = |what: &str| JavaFault::unfit(what.as_bytes(), "a histogram that can be");
        if self.bins.is_empty() {
            return Ok(Histogram::default());
        }
        let (min, max, sum) = self.stat.ok_or_else(|| unfit("bins without their smallest, largest and sum"))?;
        if min > max || sum > u128::from(max) * u128::from(self.count) {
            let what = format!("smallest {min}, largest {max} and sum {sum} of {} values", self.count);
            return Err(unfit(&what));
        }
        Ok(Histogram { bins: self.bins, min, max, sum, ..Histogram::default() })
    }
}

fn next<T: FromStr>(words: &mut SplitAsciiWhitespace<'_>) -> Option<T> {
    words.next()?.parse().ok()
}

fn keep(map: &mut BTreeMap<String, u64>, name: &str, value: u64) -> Option<()> {
    if name.len() > NAMES || map.len() >= NAMES {
        return None;
    }
    map.insert(name.to_owned(), value);
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ready_line_is_read_and_others_are_not() {
        let line = b"ready 1 groups=6 live_heap_bytes=150 heap_max_bytes=900 java=17.0.9 collector=Serial pid=7";
        let ready = Ready::parse(line).unwrap();
        assert_eq!((ready.groups, ready.live_heap_bytes), (6, 150));
        let java = ("application_java".to_owned(), "17.0.9".to_owned());
        assert!(ready.facts.len() == 3 && ready.facts.contains(&java), "{ready:?}");
        for line in [
            &b"ready 2 groups=6 live_heap_bytes=1"[..],
            b"ready 1",
            b"ready 1 groups=0",
            b"ready 1 groups=-1",
            b"ready 1 groups=99999999999",
            b"ready 1 groups=6 java=\x1b[2J",
            b"ready 1 groups=6 java=\xff",
            b"",
        ] {
            assert_eq!(Ready::parse(line), None, "{line:?}");
        }
    }

    #[test]
    fn a_number_is_all_of_its_line() {
        assert_eq!(number(b"count 12", "count"), Some(12));
        for line in [&b"count"[..], b"count -1", b"count 1 2", b"stopped 1", b"count 99999999999999999999999"] {
            assert_eq!(number(line, "count"), None, "{line:?}");
        }
    }

    fn summary_of(lines: &[&str]) -> Result<Summary, JavaFault> {
        let mut summary = Summary::default();
        lines.iter().try_for_each(|line| summary.take(line.as_bytes())).map(|()| summary)
    }

    #[test]
    fn a_result_is_read() {
        let lines = ["bin response 10 19 2", "bin response 20 20 1", "stat response 11 20 45", "transaction payment 3"];
        let summary = summary_of(&[&lines[..], &["value dropped 4", "value newer 5"]].concat()).unwrap();
        assert_eq!((summary.transactions["payment"], summary.value("dropped").unwrap()), (3, 4));
        assert!(summary.value("cpu_ns").is_err());
        let times = summary.response.finish().unwrap();
        assert_eq!((times.count(), times.min, times.max, times.sum), (3, 11, 20, 45));
        assert!(summary.service.finish().unwrap().is_empty());
    }

    #[test]
    fn what_no_histogram_can_be_is_refused() {
        for lines in [
            &["bin response 10 9 1"][..],
            &["bin response 10 19 0"],
            &["bin response 10 19 1", "bin response 19 20 1"],
            &["bin response 10 19 18446744073709551615"],
            &["bin response 10 19"],
            &["bin response 10 19 1 1"],
            &["bin other 10 19 1"],
            &["stat response 1 2 -3"],
            &["nonsense"],
            &[""],
        ] {
            assert!(matches!(summary_of(lines), Err(JavaFault::Unfit { .. })), "{lines:?}");
        }
        for stat in ["stat service 1 2 3", "stat response 20 10 10", "stat response 10 19 20"] {
            let summary = summary_of(&["bin response 10 19 1", stat]).unwrap();
            assert!(summary.response.finish().is_err(), "{stat}");
        }
    }

    #[test]
    fn names_without_end_are_not_kept() {
        let mut summary = Summary::default();
        let taken = (0..1000).take_while(|n| summary.take(format!("value name-{n} 1").as_bytes()).is_ok()).count();
        assert_eq!(taken, NAMES);
    }
}
