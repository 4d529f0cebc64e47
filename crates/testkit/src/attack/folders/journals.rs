//! Journals and plans that say what is not so.

use std::path::Path;

use tare_record::{Folder, Journal, JournalEvent, JournalWriter, layout};

use super::{Case, Must, flip};

/// A journal written anew, with a chain that is sound: what it is, what must hold, and its events.
type Anew = (&'static str, Must, fn(Vec<JournalEvent>) -> Vec<JournalEvent>);

const ANEW: [Anew; 12] = [
    ("that names no fixed files", Must::Refused, |events| first(events, |_, files| files.clear())),
    ("that names another file", Must::Refused, |events| {
        first(events, |_, files| files[0].0 = "/etc/passwd".to_owned())
    }),
    ("that names a file twice", Must::Refused, |events| first(events, |_, files| files.push(files[0].clone()))),
    ("with a run id that leads out", Must::Refused, |events| first(events, |id, _| *id = "../../../etc".to_owned())),
    ("with the id of another run", Must::Refused, |events| {
        first(events, |id, _| *id = "20260102-030000-0bad".to_owned())
    }),
    ("that begins a second run", Must::Refused, |mut events| {
        events.insert(3, events[0].clone());
        events
    }),
    ("without its first line", Must::Refused, |events| events[1..].to_vec()),
    ("without acknowledgements", Must::Refused, |events| keep(events, |event| !acknowledges(event, 0..3))),
    ("that acknowledges a trial twice", Must::Refused, |mut events| {
        events.insert(3, events[2].clone());
        events
    }),
    ("that acknowledges what is not there", Must::Refused, |mut events| {
        events.insert(3, JournalEvent::TrialAcknowledged { index: u32::MAX, digest: "0".repeat(64) });
        events
    }),
    ("with a digest that is not the trial's", Must::Refused, |mut events| {
        events.iter_mut().filter(|event| acknowledges(event, 1..2)).for_each(|event| {
            *event = JournalEvent::TrialAcknowledged { index: 1, digest: "0".repeat(64) };
        });
        events
    }),
    ("of a run that ended a trial earlier", Must::CutShort, |events| {
        keep(events, |event| !acknowledges(event, 2..3) && *event != JournalEvent::RunFinished)
    }),
];

/// Texts in place of a file: its name, what it is, and the text made from the present one.
type Text = (&'static str, &'static str, fn(String) -> String);

const TEXTS: [Text; 14] = [
    (layout::JOURNAL, "without its last line feed", |text| text.trim_end().to_owned()),
    (layout::JOURNAL, "with two lines changed about", |text| {
        let mut lines: Vec<&str> = text.lines().collect();
        lines.swap(2, 3);
        lines.join("\n") + "\n"
    }),
    (layout::JOURNAL, "without its third line", |text| {
        text.lines().enumerate().filter(|(at, _)| *at != 2).map(|(_, line)| format!("{line}\n")).collect()
    }),
    (layout::JOURNAL, "with a line of 2 MB", |text| {
        let long = format!("{{\"seq\":1,\"at\":\"{}\"}}\n", "x".repeat(2_000_000));
        text.replacen('\n', &format!("\n{long}"), 1)
    }),
    (layout::JOURNAL, "of 5,000,000 short lines", |text| text + &"{}\n".repeat(5_000_000)),
    (layout::JOURNAL, "that is empty", |_| String::new()),
    (layout::JOURNAL, "with escapes for a terminal", |text| text.replacen('\n', "\n\u{1b}[2J\u{202e}\u{7}\n", 1)),
    (layout::PLAN, "of 4294967295 blocks", |text| text.replacen("\"blocks\": 1", "\"blocks\": 4294967295", 1)),
    (layout::PLAN, "with a label of 5 MB", |text| {
        text.replacen("\"label\": \"native\"", &format!("\"label\": \"{}\"", "x".repeat(5_000_000)), 1)
    }),
    (layout::PLAN, "with numbers beyond all bounds", |text| text.replacen("\"seed\": 7", "\"seed\": 1e999", 1)),
    (layout::PLAN, "that is nested a million deep", |_| format!("{{\"a\":{}", "[".repeat(1_000_000))),
    (layout::PLAN, "of two million values", |_| {
        format!("{{\"schema\":1,\"trials\":[],\"a\":[{}0]}}", "[],".repeat(2_000_000))
    }),
    (layout::ENVIRONMENT, "that is nested a million deep", |_| "[".repeat(1_000_000)),
    (layout::STUDY, "with another text", |text| text + "# and more\n"),
];
const FLIPS: u32 = 8;

/// How many cases there are.
pub(super) const CASES: u32 = (ANEW.len() + TEXTS.len()) as u32 + FLIPS;

/// Makes a case.
pub(super) fn make(number: u32, folder: &Path) -> Case {
    if let Some((name, must, events)) = ANEW.get(number as usize) {
        anew(folder, events);
        return Case::new(format!("a journal {name}"), *must);
    }
    let number = number as usize - ANEW.len();
    if let Some((file, name, text)) = TEXTS.get(number) {
        let at = folder.join(file);
        let before = std::fs::read_to_string(&at).unwrap();
        let after = text(before.clone());
        assert_ne!(before, after, "{file} {name}");
        std::fs::write(&at, after).unwrap();
        // A journal that lost its end is that of a run that was cut short.
        let must = if number == 0 { Must::CutShort } else { Must::Refused };
        return Case::new(format!("{file} {name}"), must);
    }
    let number = number - TEXTS.len();
    let file = [layout::JOURNAL, layout::PLAN, layout::ENVIRONMENT, layout::STUDY][number % 4];
    flip(&folder.join(file), number as u64);
    Case::new(format!("{file} with a bit flipped ({number})"), Must::Refused)
}

/// Writes the journal of a folder anew.
fn anew(folder: &Path, events: impl Fn(Vec<JournalEvent>) -> Vec<JournalEvent>) {
    let folder = Folder::open(folder).unwrap();
    let before = Journal::read(&folder).unwrap().entries.into_iter().map(|entry| entry.event).collect();
    folder.remove(layout::JOURNAL).unwrap();
    let mut writer = JournalWriter::create(&folder).unwrap();
    events(before).iter().for_each(|event| writer.append(event).unwrap());
}

fn first(mut events: Vec<JournalEvent>, alter: fn(&mut String, &mut Vec<(String, String)>)) -> Vec<JournalEvent> {
    let JournalEvent::RunStarted { run_id, files, .. } = &mut events[0] else {
        panic!("the first line begins the run")
    };
    alter(run_id, files);
    events
}

fn keep(events: Vec<JournalEvent>, kept: impl Fn(&JournalEvent) -> bool) -> Vec<JournalEvent> {
    events.into_iter().filter(kept).collect()
}

fn acknowledges(event: &JournalEvent, which: std::ops::Range<u32>) -> bool {
    matches!(event, JournalEvent::TrialAcknowledged { index, .. } if which.contains(index))
}
