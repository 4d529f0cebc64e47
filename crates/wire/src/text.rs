//! Text from a guest, made fit to be shown.
//!
//! What a guest says ends on terminals and in files that people open. An escape sequence there could clear a screen,
//! rewrite what was said before or set a title; a sign that turns the direction of writing could make a line read
//! as another. So both are taken out, once, where an answer comes in.

use tare_model::java::JavaDone;
use tare_model::sample::{Sample, Source};
use tare_model::social::SocialDone;
use tare_model::sql::SqlRows;
use tare_model::text::{is_unfit, readable};
use tare_model::web::WebDone;

use crate::message::{AgentFacts, Reply, ServeReport};

/// Longest text of an answer that is kept, bytes; what a command printed is not text here.
const LONGEST_BYTES: usize = 16 << 10;
/// Most facts, reasons or settings that are kept of one answer.
const MOST_ENTRIES: usize = 1000;

/// Orders in doubt that are taken: each client of a store may lose some connections.
const MOST_DOUBTS: usize = 100_000;

/// The text fit to be shown: its beginning, if it is very long.
pub(crate) fn brief(text: &str) -> String {
    let end = text.floor_char_boundary(LONGEST_BYTES);
    let mut shown = readable(&text[..end]);
    if end < text.len() {
        shown.push_str(" ...");
    }
    shown
}

/// The answer with all its text fit to be shown. Bytes, such as a command's output, stay as they are.
pub(crate) fn clean(mut reply: Reply) -> Reply {
    match &mut reply {
        Reply::Hello { version, .. } => make_readable(version),
        Reply::Facts(AgentFacts { facts }) => clean_pairs(facts),
        Reply::Served(ServeReport { errors, granted, .. }) => {
            clean_counts(errors);
            clean_pairs(granted);
        }
        Reply::Driven(result) => {
            clean_counts(&mut result.errors);
            clean_pairs(&mut result.granted);
            result.steps.truncate(MOST_ENTRIES);
            result.steps.iter_mut().for_each(|step| make_readable(&mut step.name));
            if let Some(done) = &mut result.store {
                done.in_doubt.truncate(MOST_DOUBTS);
                done.unnumbered.truncate(MOST_DOUBTS);
                make_readable(&mut done.ramp);
            }
            result.java.iter_mut().for_each(clean_java);
            result.web.iter_mut().for_each(clean_web);
            result.social.iter_mut().for_each(clean_social);
        }
        Reply::Rows(Ok(results)) => results.iter_mut().for_each(clean_rows),
        Reply::StoreLoaded(Ok(loaded)) => loaded.tables.iter_mut().for_each(|(table, ..)| make_readable(table)),
        Reply::SocialLoaded(Ok(loaded)) => loaded.tables.iter_mut().for_each(|(table, ..)| make_readable(table)),
        Reply::Rows(Err(failure))
        | Reply::StoreLoaded(Err(failure))
        | Reply::StoreCounted(Err(failure))
        | Reply::SocialLoaded(Err(failure)) => {
            make_readable(&mut failure.message);
            failure.sqlstate.iter_mut().for_each(make_readable);
        }
        Reply::Samples { samples, .. } => {
            // A guest tells what it sees inside, and nothing about the host or the client.
            samples.retain(|sample| matches!(sample.source, Source::InGuest(_)));
            for Sample { source, series, .. } in samples {
                make_readable(series);
                if let Source::InGuest(name) = source {
                    make_readable(name);
                }
            }
        }
        Reply::Clock { .. }
        | Reply::Serving { .. }
        | Reply::Prepared { .. }
        | Reply::BusyStarted { .. }
        | Reply::BusyIterations { .. }
        | Reply::Executed(_)
        | Reply::Started { .. }
        | Reply::Looked { .. }
        | Reply::Holding { .. }
        | Reply::File { .. }
        | Reply::Fetched { .. }
        | Reply::StoreCounted(Ok(_))
        | Reply::Done => {}
    }
    reply
}

fn clean_web(done: &mut WebDone) {
    clean_counts(&mut done.faults);
    done.types.truncate(MOST_ENTRIES);
    done.types.iter_mut().for_each(|one| make_readable(&mut one.name));
}

fn clean_java(done: &mut JavaDone) {
    let transactions = std::mem::take(&mut done.transactions).into_iter().take(MOST_ENTRIES);
    done.transactions = transactions.map(|(name, count)| (brief(&name), count)).collect();
    done.wrong.iter_mut().for_each(make_readable);
}

fn clean_social(done: &mut SocialDone) {
    clean_counts(&mut done.faults);
    done.instances.truncate(MOST_ENTRIES);
    for instance in &mut done.instances {
        instance.operations.truncate(MOST_ENTRIES);
        instance.operations.iter_mut().for_each(|one| make_readable(&mut one.name));
    }
}

fn clean_rows(results: &mut SqlRows) {
    make_readable(&mut results.tag);
    results.columns.iter_mut().for_each(make_readable);
    results.rows.truncate(MOST_ENTRIES);
    results.rows.iter_mut().flatten().flatten().for_each(make_readable);
}

fn clean_pairs(pairs: &mut Vec<(String, String)>) {
    pairs.truncate(MOST_ENTRIES);
    for (name, value) in pairs {
        make_readable(name);
        make_readable(value);
    }
}

fn clean_counts(counts: &mut Vec<(String, u64)>) {
    counts.truncate(MOST_ENTRIES);
    counts.iter_mut().for_each(|(reason, _)| make_readable(reason));
}

/// Most text is fit already and stays where it is.
fn make_readable(text: &mut String) {
    if text.len() > LONGEST_BYTES || text.chars().any(is_unfit) {
        *text = brief(text);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::panic)]
    use super::*;
    use tare_model::Histogram;
    use tare_model::drive::DriveResult;
    use tare_model::java::JavaDone;
    use tare_model::social::InstanceDone;
    use tare_model::trial::RequestType;

    #[test]
    fn long_texts_are_cut() {
        let long = brief(&"é".repeat(LONGEST_BYTES));
        assert!(long.len() <= LONGEST_BYTES + 4 && long.ends_with(" ..."));
    }

    #[test]
    fn every_text_of_an_answer_is_cleaned_and_bytes_are_not() {
        let facts = vec![("k\u{1b}".to_owned(), "v\u{7}".to_owned()); MOST_ENTRIES + 1];
        let Reply::Facts(AgentFacts { facts }) = clean(Reply::Facts(AgentFacts { facts })) else { return };
        assert_eq!(facts.len(), MOST_ENTRIES);
        assert_eq!(facts[0], ("k\u{fffd}".to_owned(), "v\u{fffd}".to_owned()));
        let report = ServeReport { errors: vec![("\u{1b}".into(), 1)], ..ServeReport::default() };
        assert!(matches!(clean(Reply::Served(report)), Reply::Served(r) if r.errors[0].0 == "\u{fffd}"));
        let sample = |source| Sample { at_ns: 1, source, series: "a\u{1b}".into(), value: 1.0 };
        let samples = vec![sample(Source::Host), sample(Source::InGuest("g\u{7}".into()))];
        let Reply::Samples { samples, .. } = clean(Reply::Samples { samples, cpu_ns: 0 }) else { return };
        assert_eq!(samples.len(), 1, "a guest spoke for the host");
        assert_eq!((&samples[0].source, &*samples[0].series), (&Source::InGuest("g\u{fffd}".into()), "a\u{fffd}"));
        let looked = |bytes: &[u8]| Reply::Looked {
            stdout: bytes.to_vec(),
            stderr: bytes.to_vec(),
            ended: None,
            resident_peak_bytes: Some(1),
        };
        assert_eq!(clean(looked(b"\x1b")), looked(b"\x1b"));
        let file = Reply::File { bytes: vec![0x1b], total_bytes: 1 };
        assert_eq!(clean(file.clone()), file);
    }

    #[test]
    fn what_an_application_sent_its_driver_is_cleaned() {
        let names = (0..=MOST_ENTRIES as u64).map(|n| (format!("{n:05}\u{1b}"), n)).collect();
        let java = JavaDone { transactions: names, wrong: Some("\u{1b}[2J".into()), ..JavaDone::default() };
        let result = DriveResult { java: Some(java), ..nothing_driven() };
        let Reply::Driven(result) = clean(Reply::Driven(Box::new(result))) else { panic!("another reply") };
        let java = result.java.unwrap_or_default();
        assert_eq!((java.transactions.len(), java.transactions.get("00007\u{fffd}")), (MOST_ENTRIES, Some(&7)));
        assert_eq!(java.wrong.as_deref(), Some("\u{fffd}[2J"));
    }

    #[test]
    fn what_users_of_a_social_application_did_is_cleaned_and_bounded() {
        let kind = |n: usize| RequestType { name: format!("home\u{1b}{n}"), ..RequestType::default() };
        let one = InstanceDone { operations: vec![kind(7)], ..InstanceDone::default() };
        let mut instances = vec![one; MOST_ENTRIES + 1];
        instances[0].operations = (0..=MOST_ENTRIES).map(kind).collect();
        let social = SocialDone { instances, faults: vec![("\u{1b}[2J".into(), 3)], ..SocialDone::default() };
        let result = DriveResult { social: Some(social), ..nothing_driven() };
        let Reply::Driven(result) = clean(Reply::Driven(Box::new(result))) else { panic!("another reply") };
        let social = result.social.unwrap_or_default();
        assert_eq!(social.faults, [("\u{fffd}[2J".to_owned(), 3)]);
        assert_eq!([social.instances.len(), social.instances[0].operations.len()], [MOST_ENTRIES; 2]);
        assert_eq!(social.instances[1].operations[0].name, "home\u{fffd}7");
    }

    fn nothing_driven() -> DriveResult {
        let none = Histogram::default;
        DriveResult {
            steady_start_ns: 0,
            steady_end_ns: 0,
            operations: 0,
            answered_total: 0,
            bytes_to_guest: 0,
            bytes_from_guest: 0,
            bytes_to_guest_total: 0,
            bytes_from_guest_total: 0,
            errors: Vec::new(),
            lost: 0,
            unfinished: 0,
            response: none(),
            service: none(),
            lateness: none(),
            backlog_max: 0,
            intervals: Vec::new(),
            cpu_user_ns: 0,
            cpu_system_ns: 0,
            run_delay_ns: None,
            threads: 0,
            granted: Vec::new(),
            verified: true,
            steps: Vec::new(),
            store: None,
            java: None,
            web: None,
            social: None,
        }
    }
}
