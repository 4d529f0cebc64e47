//! The journal: what was about to be done and what was done, one checked line at a time.
//!
//! A line is `{"seq":N,"at":"...","event":{"kind":...},"check":"0123456789abcdef"}`; `check` is the first 16
//! hexadecimal digits of the SHA-256 of the bytes before `,"check"`.

use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tare_model::trial::Phase;

use crate::digest::sha256_hex;
use crate::error::{RecordError, Result};

/// Something that happened, or is about to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum JournalEvent {
    /// The folder was made. Always the first line, written by the writer itself.
    RunStarted {
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
    /// What the part of the run that continues is called on the host: its processes, control groups and directories.
    NamedOnHost {
        /// Its id there; the id in the run's first line names the results.
        run_id: String,
    },
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
    /// The run ends before its plan does.
    RunInterrupted {
        /// Why, for people.
        reason: String,
    },
    /// Every trial of the plan was run.
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
    /// Lines that do not stand though a crash cannot explain it: (line number from 1, what is wrong).
    pub altered: Vec<(u64, String)>,
    /// Length of the part before a torn line, bytes.
    pub sound_bytes: u64,
}

impl Journal {
    /// Reads a journal, whatever its state.
    ///
    /// # Errors
    /// Only when the file cannot be read; what is wrong inside is in the result.
    pub fn read(path: &Path) -> Result<Self> {
        let mut bytes = Vec::new();
        File::open(path)
            .and_then(|mut file| file.read_to_end(&mut bytes))
            .map_err(|e| RecordError::io("reading the journal", path, e))?;
        Ok(Self::parse(&bytes))
    }

    /// Acknowledged trials with their digests, in the order of the journal.
    pub fn acknowledged(&self) -> impl Iterator<Item = (u32, &str)> {
        self.entries.iter().filter_map(|entry| match &entry.event {
            JournalEvent::TrialAcknowledged { index, digest } => Some((*index, digest.as_str())),
            _ => None,
        })
    }

    /// Whether the run went through its plan.
    pub fn finished(&self) -> bool {
        self.entries.iter().any(|entry| entry.event == JournalEvent::RunFinished)
    }

    fn parse(bytes: &[u8]) -> Self {
        let mut journal = Self::default();
        let mut next_seq = 0;
        let mut start = 0;
        for number in 1.. {
            let rest = bytes.get(start..).unwrap_or_default();
            if rest.is_empty() {
                break;
            }
            let (line, whole) = match rest.iter().position(|&byte| byte == b'\n') {
                Some(end) => (&rest[..end], true),
                None => (rest, false),
            };
            let last = start + line.len() + usize::from(whole) == bytes.len();
            match parse_line(line) {
                Ok(entry) if whole => {
                    if entry.seq != next_seq {
                        let what = format!("is numbered {} where {next_seq} was due: lines are missing", entry.seq);
                        journal.altered.push((number, what));
                    }
                    next_seq = entry.seq + 1;
                    journal.entries.push(entry);
                }
                // The last line is the only one that a crash can leave unfinished.
                Ok(_) | Err(_) if last => {
                    journal.torn = Some(line.to_vec());
                    break;
                }
                Ok(_) => {}
                Err(what) => {
                    journal.altered.push((number, what));
                    next_seq += 1;
                }
            }
            start += line.len() + 1;
            journal.sound_bytes = start as u64;
        }
        journal
    }
}

const CHECK: &str = ",\"check\":\"";

fn parse_line(line: &[u8]) -> Result<JournalEntry, String> {
    let text = std::str::from_utf8(line).map_err(|_| "is not text".to_owned())?;
    let at = text.rfind(CHECK).ok_or("has no checksum")?;
    let check = text[at + CHECK.len()..].strip_suffix("\"}").ok_or("has no checksum")?;
    if check != check_of(&text[..at]) {
        return Err("does not match its checksum".to_owned());
    }
    serde_json::from_str(text).map_err(|e| format!("is sound but holds an event that this tare does not know ({e})"))
}

fn check_of(prefix: &str) -> String {
    sha256_hex(prefix.as_bytes()).chars().take(16).collect()
}

fn line_of(entry: &JournalEntry) -> Result<String, serde_json::Error> {
    let mut line = serde_json::to_string(entry)?;
    line.pop();
    let check = check_of(&line);
    line.push_str(CHECK);
    line.push_str(&check);
    line.push_str("\"}\n");
    Ok(line)
}

/// Appends to a journal. Holds the folder's lock as long as it lives.
#[derive(Debug)]
pub struct JournalWriter {
    file: File,
    path: PathBuf,
    next_seq: u64,
    sound_bytes: u64,
}

impl JournalWriter {
    /// Opens `path`, which must not be there when `new`, and takes the lock.
    ///
    /// # Errors
    /// When it cannot be opened, and [`RecordError::Busy`] when another writer holds the lock.
    pub fn open(path: &Path, new: bool) -> Result<Self> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create_new(new)
            .mode(0o644)
            .open(path)
            .map_err(|e| RecordError::io("opening the journal", path, e))?;
        if file.try_lock().is_err() {
            let dir = path.parent().unwrap_or(path).to_owned();
            return Err(RecordError::Busy { dir });
        }
        Ok(Self { file, path: path.to_owned(), next_seq: 0, sound_bytes: 0 })
    }

    /// Goes on where a journal that was read ends, and cuts off what was torn.
    pub(crate) fn continue_after(&mut self, journal: &Journal) -> Result<()> {
        self.next_seq = journal.entries.last().map_or(0, |entry| entry.seq + 1);
        self.sound_bytes = journal.sound_bytes;
        self.cut().map_err(|e| RecordError::io("cutting off a torn line", &self.path, e))
    }

    /// Writes one line, and waits for the disk where the event asks for it.
    ///
    /// # Errors
    /// When the line is not written; half a line is taken back.
    pub fn append(&mut self, event: &JournalEvent) -> Result<()> {
        let at = jiff::Timestamp::now().to_string();
        let entry = JournalEntry { seq: self.next_seq, at, event: event.clone() };
        let line = line_of(&entry)
            .map_err(|e| RecordError::io("writing the journal", &self.path, std::io::Error::other(e)))?;
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
        Ok(())
    }

    fn cut(&mut self) -> std::io::Result<()> {
        self.file.set_len(self.sound_bytes)?;
        self.file.seek(SeekFrom::Start(self.sound_bytes)).map(|_| ())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    fn three_lines(dir: &Path) -> (PathBuf, Vec<u8>) {
        let path = dir.join("journal.jsonl");
        let mut writer = JournalWriter::open(&path, true).unwrap();
        let calibration = serde_json::json!({"link": "veth0", "share": 0.1});
        writer.append(&JournalEvent::Calibrated { case: "rr".to_owned(), calibration }).unwrap();
        writer.append(&JournalEvent::PhaseEntered { index: 0, phase: Phase::Drive }).unwrap();
        writer.append(&JournalEvent::RunFinished).unwrap();
        (path.clone(), std::fs::read(path).unwrap())
    }

    #[test]
    fn what_was_written_is_read() {
        let dir = tempfile::tempdir().unwrap();
        let (path, bytes) = three_lines(dir.path());
        let journal = Journal::read(&path).unwrap();
        assert_eq!(journal.entries.len(), 3);
        assert_eq!(journal.entries[1].event, JournalEvent::PhaseEntered { index: 0, phase: Phase::Drive });
        assert!(journal.finished() && journal.torn.is_none() && journal.altered.is_empty());
        assert_eq!(journal.sound_bytes, bytes.len() as u64);
    }

    #[test]
    fn a_cut_at_any_byte_leaves_the_lines_before_it_and_at_most_one_torn() {
        let dir = tempfile::tempdir().unwrap();
        let (_, bytes) = three_lines(dir.path());
        for cut in 0..bytes.len() {
            let journal = Journal::parse(&bytes[..cut]);
            let whole = bytes[..cut].iter().filter(|&&b| b == b'\n').count();
            assert_eq!(journal.entries.len(), whole, "cut at byte {cut}");
            assert!(journal.altered.is_empty());
            let rest = journal.torn.map_or(0, |line| line.len());
            assert_eq!(journal.sound_bytes as usize + rest, cut);
        }
    }

    #[test]
    fn any_byte_changed_before_the_last_line_is_told_as_altered() {
        let dir = tempfile::tempdir().unwrap();
        let (_, bytes) = three_lines(dir.path());
        let last_line = bytes[..bytes.len() - 1].iter().rposition(|&b| b == b'\n').unwrap();
        for at in 0..last_line {
            let mut altered = bytes.clone();
            altered[at] ^= 0x01;
            assert!(!Journal::parse(&altered).altered.is_empty(), "byte {at}");
        }
    }

    #[test]
    fn a_line_taken_out_is_told() {
        let dir = tempfile::tempdir().unwrap();
        let (_, bytes) = three_lines(dir.path());
        let text = String::from_utf8(bytes).unwrap();
        let without: String =
            text.lines().enumerate().filter(|(n, _)| *n != 1).map(|(_, l)| format!("{l}\n")).collect();
        let journal = Journal::parse(without.as_bytes());
        assert_eq!(journal.altered.len(), 1);
        assert!(journal.altered[0].1.contains("lines are missing"));
    }

    #[test]
    fn what_was_found_by_trying_is_on_disk_before_it_is_used_and_reads_back_exactly() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("journal.jsonl");
        let calibration =
            serde_json::json!({"rate_per_s": 6130.1 / 3.0, "cpu_share": 0.55, "tries": [[1.0, 0.1], [2.0, 0.2]]});
        let event = JournalEvent::Calibrated { case: "density".to_owned(), calibration };
        assert!(event.durable());
        JournalWriter::open(&path, true).unwrap().append(&event).unwrap();
        let journal = Journal::read(&path).unwrap();
        assert_eq!(journal.entries[0].event, event);
        assert!(std::fs::read_to_string(&path).unwrap().contains("\"kind\":\"calibrated\",\"case\":\"density\""));
    }

    #[test]
    fn two_writers_never_share_a_journal() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("journal.jsonl");
        let _first = JournalWriter::open(&path, true).unwrap();
        assert!(matches!(JournalWriter::open(&path, false), Err(RecordError::Busy { .. })));
    }
}
