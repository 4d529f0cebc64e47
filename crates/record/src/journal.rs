//! The journal: what was about to be done and what was done, one line at a time, each bound to all lines before it.
//!
//! A line is `{"seq":N,"at":"...","event":{"kind":...},"chain":"64 hexadecimal digits"}`; `chain` is the SHA-256 of the text of the
//! line before's `chain` (of the first line: nothing) and the bytes of this line before `,"chain"`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tare_model::clean::Untrusted;
use tare_model::environment::Machine;
use tare_model::precision::CaseBlocks;
use tare_model::trial::Phase;

use crate::digest::sha256_hex;
use crate::error::{RecordError, Result};
use crate::folder::Folder;
use crate::layout;
use crate::results::known;

/// Newest schema of journals, and of the folder around them, that this tare reads: its files and their names, and the form of a line.
pub const JOURNAL_SCHEMA: u32 = 1;

/// Most bytes of a line.
const LINE_BYTES: usize = 1 << 20;
/// Most values of JSON in all lines together, beside these of each line: so that a few bytes a value cannot fill the memory.
const VALUES: usize = 400_000;
const VALUES_OF_A_LINE: usize = 64;

/// Something that happened, or is about to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum JournalEvent {
    /// The folder was made. Always the first line, written by the writer itself.
    RunStarted {
        /// Schema of the journal and of its folder, see [`JOURNAL_SCHEMA`].
        schema: u32,
        /// Run id.
        run_id: String,
        /// Version of tare.
        tare_version: String,
        /// The plan's hash.
        plan_hash: String,
        /// SHA-256 of the files that never change, as (file name, hexadecimal digest).
        files: Vec<(String, String)>,
    },
    /// A run that was cut short is continued; written by the writer itself.
    RunResumed {
        /// Version of tare that continues.
        tare_version: String,
        /// What had to be repaired, each in a sentence.
        repairs: Vec<String>,
    },
    /// The study as it was written, with all that the folder does not show of it: machines, users, secrets.
    StudyIdentity {
        /// Its hash by a key of the host's, which strangers do not have; see `tare_study::identity`.
        keyed_hash: String,
    },
    /// What the part of the run that continues is called on the host: its processes, control groups and directories.
    NamedOnHost {
        /// Its id there; the id in the run's first line names the results.
        run_id: String,
    },
    /// A machine beside the host of the run was reached for the first time in this part of the run, and described itself.
    MachineDescribed(Machine),
    /// The load of a case was found by trying.
    Calibrated {
        /// Case id.
        case: String,
        /// What was found, as the workload describes it.
        calibration: Value,
    },
    /// A trial begins.
    TrialStarted {
        /// Position in the plan.
        index: u32,
    },
    /// A trial reached a phase.
    PhaseEntered {
        /// Position in the plan.
        index: u32,
        /// The phase.
        phase: Phase,
    },
    /// A trial that searches a load tries one next.
    TryStarted {
        /// Position in the plan.
        index: u32,
        /// Which try it is, from 1.
        number: u32,
        /// Clients, or arrivals a second.
        load: f64,
    },
    /// A trial is in the results and reads as it was measured; written by the writer itself.
    TrialAcknowledged {
        /// Position in the plan.
        index: u32,
        /// Its digest, see [`crate::trial_digest`].
        digest: String,
    },
    /// Acknowledged trials of a set whose others are missing count no more and are removed, so that the whole set runs again; written by
    /// the writer itself.
    TrialsWithdrawn {
        /// Positions in the plan.
        indices: Vec<u32>,
        /// Why, in a sentence.
        reason: String,
    },
    /// A case takes no further block: its trials of later blocks are not run.
    CaseEnded(CaseBlocks),
    /// The run ends before its plan does.
    RunInterrupted {
        /// Why, for people.
        reason: String,
    },
    /// Every trial of the plan was run, save those of blocks that their cases do not take.
    RunFinished,
}

impl JournalEvent {
    /// Whether others rely on the line, so that it must be on disk before anything else is done.
    pub const fn durable(&self) -> bool {
        !matches!(self, Self::TrialStarted { .. } | Self::PhaseEntered { .. } | Self::TryStarted { .. })
    }
}

/// One line of the journal.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct JournalEntry {
    /// Position in the journal, from 0.
    pub seq: u64,
    /// When it was written, UTC, RFC 3339.
    pub at: String,
    /// What happened.
    pub event: JournalEvent,
}

/// A journal as it was read.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Journal {
    /// The lines that stand, in order.
    pub entries: Vec<JournalEntry>,
    /// Bytes of the last line if it was torn by a crash.
    pub torn: Option<Vec<u8>>,
    /// The first line that does not stand though a crash cannot explain it: (its number from 1, what is wrong). No line after it is
    /// believed.
    pub altered: Option<(u64, String)>,
    /// Length of the lines that stand, bytes.
    pub sound_bytes: u64,
    root_hash: String,
}

impl Journal {
    /// Reads the journal of a folder, whatever its state.
    ///
    /// # Errors
    /// Only when the file cannot be read, or is of a newer tare; what is wrong inside is in the result.
    pub fn read(folder: &Folder) -> Result<Self> {
        let path = folder.file(layout::JOURNAL);
        let missing = || RecordError::NotARun { dir: folder.path().to_owned(), missing: layout::JOURNAL };
        let file = folder.open_file(layout::JOURNAL)?.ok_or_else(missing)?;
        // What is appended meanwhile may go beyond what was looked at.
        let mut file = BufReader::new(file.take(layout::most_bytes(layout::JOURNAL).unwrap_or_default()));
        let failed = |e| RecordError::io("reading the journal", &path, e);
        let mut first = Vec::new();
        file.by_ref().take(LINE_BYTES as u64).read_until(b'\n', &mut first).map_err(failed)?;
        if let Some(schema) = schema_of(&first) {
            known(&path, schema, JOURNAL_SCHEMA)?;
        }
        Self::parse(first.chain(file)).map_err(failed)
    }

    /// Reads a journal, whatever its state.
    ///
    /// # Errors
    /// What the reader fails with.
    pub fn parse(reader: impl Read) -> std::io::Result<Self> {
        let mut reader = BufReader::new(reader);
        let (mut journal, mut values, mut line) = (Self::default(), 0, Vec::new());
        loop {
            line.clear();
            // One byte more than a line may have, and its line feed.
            reader.by_ref().take(LINE_BYTES as u64 + 2).read_until(b'\n', &mut line)?;
            if line.is_empty() {
                return Ok(journal);
            }
            let length = line.len() as u64;
            let whole = line.pop_if(|byte| *byte == b'\n').is_some();
            let read = journal.next(&line, &mut values);
            match read {
                Ok((entry, chain)) if whole => {
                    journal.entries.push(entry);
                    journal.root_hash = chain;
                    journal.sound_bytes += length;
                }
                // Only the last line can a crash leave unfinished: without its end, or with zeros where a block was not written.
                Ok(_) | Err(_) if (!whole || line.contains(&0)) && reader.fill_buf()?.is_empty() => {
                    journal.torn = Some(std::mem::take(&mut line));
                    return Ok(journal);
                }
                Ok(_) => return Ok(journal.broken("is too long".to_owned())),
                Err(what) => return Ok(journal.broken(what)),
            }
        }
    }

    /// Acknowledged trials that were not withdrawn since, with their digests, in the order of the journal.
    pub fn acknowledged(&self) -> impl Iterator<Item = (u32, &str)> {
        let mut withdrawn = BTreeMap::new();
        for entry in &self.entries {
            if let JournalEvent::TrialsWithdrawn { indices, .. } = &entry.event {
                withdrawn.extend(indices.iter().map(|index| (*index, entry.seq)));
            }
        }
        self.entries.iter().filter_map(move |entry| match &entry.event {
            JournalEvent::TrialAcknowledged { index, digest } => {
                let stands = withdrawn.get(index).is_none_or(|last| entry.seq > *last);
                stands.then_some((*index, digest.as_str()))
            }
            _ => None,
        })
    }

    /// The trials of [`Self::acknowledged`].
    pub(crate) fn acknowledged_indices(&self) -> BTreeSet<u32> {
        self.acknowledged().map(|(index, _)| index).collect()
    }

    /// Trials that were withdrawn, whatever became of them since.
    pub(crate) fn withdrawn(&self) -> BTreeSet<u32> {
        let of = |entry: &JournalEntry| match &entry.event {
            JournalEvent::TrialsWithdrawn { indices, .. } => indices.clone(),
            _ => Vec::new(),
        };
        self.entries.iter().flat_map(of).collect()
    }

    /// The cases that take no further block, in the order of the journal.
    pub fn ended(&self) -> impl Iterator<Item = &CaseBlocks> {
        self.entries.iter().filter_map(|entry| match &entry.event {
            JournalEvent::CaseEnded(ended) => Some(ended),
            _ => None,
        })
    }

    /// The machines beside the host, each as it was described last, in the order of their names.
    pub(crate) fn machines(&self) -> Vec<Machine> {
        let described = self.entries.iter().filter_map(|entry| match &entry.event {
            JournalEvent::MachineDescribed(machine) => Some((machine.name.as_str(), machine)),
            _ => None,
        });
        let mut machines: Vec<Machine> = described.collect::<BTreeMap<_, _>>().into_values().cloned().collect();
        machines.clean();
        machines
    }

    /// Whether the run went through its plan.
    pub fn finished(&self) -> bool {
        self.entries.last().is_some_and(|entry| entry.event == JournalEvent::RunFinished)
    }

    /// The chain of the last line that stands, by which the whole folder is known: 64 hexadecimal digits, or nothing where no line stands.
    pub fn root_hash(&self) -> &str {
        &self.root_hash
    }

    fn broken(mut self, what: String) -> Self {
        self.altered = Some((self.entries.len() as u64 + 1, what));
        self
    }

    /// Reads the line that comes next, and gives its chain.
    fn next(&self, line: &[u8], values: &mut usize) -> Result<(JournalEntry, String), String> {
        let text = std::str::from_utf8(line).map_err(|_| "is not text".to_owned())?;
        let at = text.rfind(CHAIN).ok_or("has no hash")?;
        let chain = text[at + CHAIN.len()..].strip_suffix("\"}").ok_or("has no hash")?;
        if chain != chain_of(&self.root_hash, &text[..at]) {
            return Err("does not match its hash: it, or what stood before it, was altered".to_owned());
        }
        let values_here = line.iter().filter(|byte| matches!(byte, b',' | b'[' | b'{')).count();
        *values += values_here.saturating_sub(VALUES_OF_A_LINE);
        if line.len() > LINE_BYTES || *values > VALUES {
            return Err("holds more than a run writes".to_owned());
        }
        let entry: JournalEntry =
            serde_json::from_str(text).map_err(|e| format!("holds an event that this tare does not know ({e})"))?;
        match self.entries.len() as u64 {
            due if entry.seq == due => Ok((entry, chain.to_owned())),
            due => Err(format!("is numbered {} where {due} was due", entry.seq)),
        }
    }
}

/// The schema that a journal's first line gives, whatever else is in it: of the line, another tare may have changed all but this.
fn schema_of(line: &[u8]) -> Option<u32> {
    #[derive(Deserialize)]
    struct Head {
        event: Schema,
    }
    #[derive(Deserialize)]
    struct Schema {
        schema: u32,
    }
    serde_json::from_slice::<Head>(line).ok().map(|head| head.event.schema)
}

const CHAIN: &str = ",\"chain\":\"";

/// The chain of a line from that of the line before and its bytes before `,"chain"`.
fn chain_of(before: &str, prefix: &str) -> String {
    sha256_hex(format!("{before}{prefix}").as_bytes())
}

/// A line with its line feed, and its chain.
fn line_of(entry: &JournalEntry, before: &str) -> Result<(String, String), serde_json::Error> {
    let mut line = serde_json::to_string(entry)?;
    line.pop();
    let chain = chain_of(before, &line);
    line.push_str(&format!("{CHAIN}{chain}\"}}\n"));
    Ok((line, chain))
}

/// Appends to a journal. Holds the folder's lock as long as it lives.
#[derive(Debug)]
pub struct JournalWriter {
    file: File,
    path: PathBuf,
    next_seq: u64,
    sound_bytes: u64,
    chain: String,
}

impl JournalWriter {
    /// Makes the journal of a folder that has none, and takes the lock.
    ///
    /// # Errors
    /// When it is there, or cannot be made.
    pub fn create(folder: &Folder) -> Result<Self> {
        Self::locked(folder, folder.open_new(layout::JOURNAL)?)
    }

    /// Opens the journal of a folder, and takes the lock. Nothing may be appended before [`Self::continue_after`].
    ///
    /// # Errors
    /// When it cannot be opened, and [`RecordError::Busy`] when another writer holds the lock.
    pub(crate) fn open(folder: &Folder) -> Result<Self> {
        Self::locked(folder, folder.open_writable(layout::JOURNAL)?)
    }

    fn locked(folder: &Folder, file: File) -> Result<Self> {
        if file.try_lock().is_err() {
            return Err(RecordError::Busy { dir: folder.path().to_owned() });
        }
        let path = folder.file(layout::JOURNAL);
        Ok(Self { file, path, next_seq: 0, sound_bytes: 0, chain: String::new() })
    }

    /// Goes on where a journal that was read ends, and cuts off what was torn.
    pub(crate) fn continue_after(&mut self, journal: &Journal) -> Result<()> {
        self.next_seq = journal.entries.len() as u64;
        self.sound_bytes = journal.sound_bytes;
        self.chain = journal.root_hash().to_owned();
        self.cut().map_err(|e| RecordError::io("cutting off a torn line", &self.path, e))
    }

    /// Writes one line, and waits for the disk where the event asks for it.
    ///
    /// # Errors
    /// When the line is not written; half a line is taken back.
    pub fn append(&mut self, event: &JournalEvent) -> Result<()> {
        let at = jiff::Timestamp::now().to_string();
        let entry = JournalEntry { seq: self.next_seq, at, event: event.clone() };
        let (line, chain) = line_of(&entry, &self.chain)
            .map_err(|e| RecordError::io("writing the journal", &self.path, std::io::Error::other(e)))?;
        if self.sound_bytes + line.len() as u64 > layout::most_bytes(layout::JOURNAL).unwrap_or_default() {
            let full =
                std::io::Error::new(std::io::ErrorKind::FileTooLarge, "no journal may be longer; begin another run");
            return Err(RecordError::io("writing the journal", &self.path, full));
        }
        let written = self.file.write_all(line.as_bytes()).and_then(|()| match event.durable() {
            true => self.file.sync_data(),
            false => Ok(()),
        });
        if let Err(e) = written {
            // Half a line must not stand before the next one, should there be space for that one.
            if let Err(cut) = self.cut() {
                return Err(RecordError::io("taking back half a line of the journal", &self.path, cut));
            }
            return Err(RecordError::io("writing the journal", &self.path, e));
        }
        self.next_seq += 1;
        self.sound_bytes += line.len() as u64;
        self.chain = chain;
        Ok(())
    }

    fn cut(&mut self) -> std::io::Result<()> {
        self.file.set_len(self.sound_bytes)?;
        self.file.seek(SeekFrom::Start(self.sound_bytes)).map(|_| ())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A journal of four lines, and its bytes.
    fn four_lines() -> (tempfile::TempDir, Vec<u8>) {
        let dir = tempfile::tempdir().unwrap();
        let mut writer = JournalWriter::create(&Folder::open(dir.path()).unwrap()).unwrap();
        writer.append(&JournalEvent::TrialStarted { index: 0 }).unwrap();
        writer.append(&JournalEvent::PhaseEntered { index: 0, phase: Phase::Drive }).unwrap();
        writer.append(&JournalEvent::TrialAcknowledged { index: 0, digest: "d".to_owned() }).unwrap();
        writer.append(&JournalEvent::RunFinished).unwrap();
        let bytes = std::fs::read(dir.path().join(layout::JOURNAL)).unwrap();
        (dir, bytes)
    }

    fn parse(bytes: &[u8]) -> Journal {
        Journal::parse(bytes).unwrap()
    }

    #[test]
    fn what_was_written_is_read() {
        let (dir, bytes) = four_lines();
        let journal = Journal::read(&Folder::open(dir.path()).unwrap()).unwrap();
        assert_eq!(journal.entries.len(), 4);
        assert_eq!(journal.entries[1].event, JournalEvent::PhaseEntered { index: 0, phase: Phase::Drive });
        assert!(journal.finished() && journal.torn.is_none() && journal.altered.is_none());
        assert_eq!(journal.sound_bytes, bytes.len() as u64);
    }

    /// The rule as the folder's README.txt has it, followed step by step.
    #[test]
    fn the_root_hash_is_the_hash_of_each_line_and_the_hash_before_it() {
        let (_dir, bytes) = four_lines();
        let mut before = String::new();
        for line in std::str::from_utf8(&bytes).unwrap().lines() {
            let end = line.find(",\"chain\"").unwrap();
            let digest = sha256_hex([before.as_bytes(), &line.as_bytes()[..end]].concat().as_slice());
            assert_eq!(&line[end..], format!(",\"chain\":\"{digest}\"}}"));
            before = digest;
        }
        assert_eq!(parse(&bytes).root_hash(), before);
        assert_eq!(before.len(), 64);
    }

    #[test]
    fn a_cut_at_any_byte_leaves_the_lines_before_it_and_at_most_one_torn() {
        let (_dir, bytes) = four_lines();
        for cut in 0..bytes.len() {
            let journal = parse(&bytes[..cut]);
            let whole = bytes[..cut].iter().filter(|&&b| b == b'\n').count();
            assert_eq!(journal.entries.len(), whole, "cut at byte {cut}");
            assert!(journal.altered.is_none());
            let rest = journal.torn.map_or(0, |line| line.len());
            assert_eq!(journal.sound_bytes as usize + rest, cut);
        }
    }

    #[test]
    fn any_byte_changed_before_the_last_line_is_seen() {
        let (_dir, bytes) = four_lines();
        let last_line = bytes[..bytes.len() - 1].iter().rposition(|&b| b == b'\n').unwrap();
        for at in 0..last_line {
            let mut altered = bytes.clone();
            altered[at] ^= 0x01;
            assert!(parse(&altered).altered.is_some(), "byte {at}");
        }
    }

    #[test]
    fn lines_that_are_gone_or_change_places_are_seen() {
        let (_dir, bytes) = four_lines();
        let lines: Vec<&[u8]> = bytes.split_inclusive(|&byte| byte == b'\n').collect();
        for order in [vec![1, 2, 3], vec![0, 2, 3], vec![0, 1, 3], vec![0, 2, 1, 3], vec![0, 1, 1, 2, 3]] {
            let text: Vec<u8> = order.iter().flat_map(|&line| lines[line]).copied().collect();
            assert!(parse(&text).altered.is_some(), "{order:?}");
        }
        // A journal without its end is that of a run that was cut short; only the root hash tells it.
        let shorter = parse(&lines[..3].concat());
        assert!(shorter.altered.is_none() && !shorter.finished());
        assert_ne!(shorter.root_hash(), parse(&bytes).root_hash());
    }

    #[test]
    fn a_line_that_would_fill_the_memory_is_refused() {
        let entry = |resource: String| {
            let line = format!(
                "{{\"seq\":0,\"at\":\"\",\"event\":{{\"kind\":\"calibrated\",\"case\":\"\",\"calibration\":{resource}}}"
            );
            format!("{line}{CHAIN}{}\"}}\n{{}}\n", chain_of("", &line))
        };
        assert_eq!(parse(entry("[[],[]]".to_owned()).as_bytes()).entries.len(), 1);
        let many = parse(entry(format!("[{}[]]", "[],".repeat(VALUES))).as_bytes());
        let long = parse(entry(format!("\"{}\"", "x".repeat(2 * LINE_BYTES))).as_bytes());
        for journal in [many, long] {
            assert_eq!((journal.entries.len(), journal.altered.map(|(line, _)| line)), (0, Some(1)));
        }
    }

    #[test]
    fn what_was_found_by_trying_is_on_disk_before_it_is_used_and_reads_back_exactly() {
        let dir = tempfile::tempdir().unwrap();
        let folder = Folder::open(dir.path()).unwrap();
        let calibration =
            serde_json::json!({"rate_per_s": 6130.1 / 3.0, "cpu_share": 0.55, "tries": [[1.0, 0.1], [2.0, 0.2]]});
        let event = JournalEvent::Calibrated { case: "density".to_owned(), calibration };
        assert!(event.durable());
        JournalWriter::create(&folder).unwrap().append(&event).unwrap();
        assert_eq!(Journal::read(&folder).unwrap().entries[0].event, event);
        let text = std::fs::read_to_string(dir.path().join(layout::JOURNAL)).unwrap();
        assert!(text.contains("\"kind\":\"calibrated\",\"case\":\"density\""));
    }

    #[test]
    fn two_writers_never_share_a_journal() {
        let dir = tempfile::tempdir().unwrap();
        let folder = Folder::open(dir.path()).unwrap();
        let _first = JournalWriter::create(&folder).unwrap();
        assert!(matches!(JournalWriter::open(&folder), Err(RecordError::Busy { .. })));
    }
}
