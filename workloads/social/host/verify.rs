//! Whether what users uploaded is there: in the databases, in the file store, and on the pages.

use std::time::Duration;

use crate::faults;
use crate::social::spec::{Added, InstanceDone, Scale, SocialDone, StoredFile};
use tare_model::marker::{MARKER_BYTES, MARKER_EVERY, marker};
use tare_model::sql::SqlRows;
use tare_model::trial::RequestType;
use tare_wire::{Reply, Request, WireError};

use super::services::{asked, files_kept, of, own};
use super::start::Instance;
use crate::{Failure, WorkSite, WorkloadError};

/// Counts what users add to.
pub(super) const COUNT: &str = "SELECT (SELECT count(*) FROM person), (SELECT count(*) FROM socialevent), \
     (SELECT count(*) FROM person_socialevent)";
/// The newest of what users have added: number and heading of its page.
const NEW_PEOPLE: &str = "SELECT userid, firstname || ' ' || lastname FROM person WHERE userid > ";
const NEW_EVENTS: &str = "SELECT socialeventid, title FROM socialevent WHERE socialeventid > ";
/// So many people and events of each instance are looked for.
const SAMPLE: u32 = 2;
/// Files that come with a person, and with an event.
const FILES: (u64, u64) = (2, 3);
/// Longest that counting may take.
const COUNTING: Duration = Duration::from_secs(120);
/// Longest that a page or a file may take.
const FETCHING: Duration = Duration::from_secs(20);
/// Longest page or file, bytes.
const PAGE_BYTES: u64 = 1 << 20;

/// The counts that [`COUNT`] asks for.
pub(super) fn counted(rows: &SqlRows) -> Option<Added> {
    let number = |at: usize| rows.rows.first()?.get(at)?.as_deref()?.parse().ok();
    Some(Added { people: number(0)?, events: number(1)?, attendances: number(2)? })
}

/// Of all drives of an instance.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Uploaded {
    /// Acknowledged.
    pub added: Added,
    /// Sent and never answered: it may be there or not.
    pub in_doubt: Added,
}

/// What is wrong with what an instance keeps, if anything is.
///
/// # Errors
/// When an agent could not do its part.
pub(super) fn wrong(
    site: &WorkSite<'_>,
    instance: &Instance,
    loaded: Added,
    scale: &Scale,
    uploaded: &Uploaded,
    folder: &str,
) -> Result<Option<String>, WorkloadError> {
    let asked = asked(&of(site)?, site.timeout);
    let after = |people: &str, past: u32, by: &str| format!("{people}{past} ORDER BY {by} DESC LIMIT {SAMPLE}");
    let (people, events) =
        (after(NEW_PEOPLE, scale.people, "userid"), after(NEW_EVENTS, scale.events, "socialeventid"));
    let rows = asked.sql(
        "count what is in the social database",
        &own(instance.number),
        &[COUNT, people.as_str(), events.as_str()],
        COUNTING,
    )?;
    let [counts, people, events] = rows.as_slice() else { return Err(other_answer().into()) };
    let there = counted(counts).ok_or_else(other_answer)?;
    let mut reasons = disagreement(loaded, uploaded, there);
    let kept = files_kept(site, folder, instance.number)?;
    reasons.extend(files(uploaded, kept));
    // What was never answered may be there without its files.
    if reasons.is_empty() && uploaded.in_doubt.people + uploaded.in_doubt.events == 0 {
        let person = [StoredFile::PersonImage, StoredFile::PersonThumbnail];
        let event = [StoredFile::EventImage, StoredFile::EventThumbnail, StoredFile::EventDocument];
        reasons.extend(found_again(site, instance, "/person?id=", people, &person)?);
        reasons.extend(found_again(site, instance, "/event?id=", events, &event)?);
    }
    Ok((!reasons.is_empty()).then(|| format!("{}: {}", instance.name, reasons.join("; "))))
}

fn other_answer() -> Failure {
    let remedy = "report this: it is a defect of tare";
    Failure::new("count what is in the social database", "the server answered something else", remedy)
}

/// The counts of a database that are not what was loaded and acknowledged.
fn disagreement(loaded: Added, uploaded: &Uploaded, there: Added) -> Vec<String> {
    let (added, doubt) = (uploaded.added, uploaded.in_doubt);
    let tables = [
        ("people", loaded.people, added.people, doubt.people, there.people),
        ("events", loaded.events, added.events, doubt.events, there.events),
        ("attendances", loaded.attendances, added.attendances, doubt.attendances, there.attendances),
    ];
    let wrong = |(what, loaded, added, doubt, there): (&str, u64, u64, u64, u64)| {
        let least = loaded + added;
        (!(least..=least + doubt).contains(&there)).then(|| {
            let doubtful = if doubt > 0 { format!(" (and {doubt} in doubt)") } else { String::new() };
            format!("{what}: the database has {there}, loaded were {loaded} and acknowledged {added}{doubtful}")
        })
    };
    tables.into_iter().filter_map(wrong).collect()
}

/// Why the files that are kept are not those that were uploaded.
fn files(uploaded: &Uploaded, kept: u64) -> Option<String> {
    let of = |added: &Added| FILES.0 * added.people + FILES.1 * added.events;
    let least = of(&uploaded.added);
    let most = least + of(&uploaded.in_doubt);
    (!(least..=most).contains(&kept)).then(|| {
        format!("files: the store has kept {kept}, those of people and events that were acknowledged are {least}")
    })
}

/// Looks for the newest of what was added, on its page and with its files.
fn found_again(
    site: &WorkSite<'_>,
    instance: &Instance,
    page: &str,
    newest: &SqlRows,
    kinds: &[StoredFile],
) -> Result<Vec<String>, WorkloadError> {
    let mut reasons = Vec::new();
    for row in &newest.rows {
        let [Some(id), Some(heading)] = row.as_slice() else { continue };
        let Ok(number) = id.parse::<u64>() else { continue };
        let path = format!("{page}{id}");
        let reason = |what: &str| format!("{path}: {what}");
        match get(site, instance, &path)? {
            Ok(body) if has_heading(&body, heading) => {}
            Ok(_) => reasons.push(reason("what was uploaded is in the database and not on its page")),
            Err(why) => reasons.push(reason(&why)),
        }
        for kind in kinds {
            let behind = if *kind == StoredFile::EventDocument { "/document" } else { "/image" };
            let path = format!("{behind}{}", kind.path(number));
            let right = get(site, instance, &path)?.and_then(|body| is_right(&body, *kind));
            reasons.extend(right.err().map(|why| format!("{path}: {why}")));
        }
    }
    Ok(reasons)
}

/// Asks an instance for a page or a file, from where load comes from.
fn get(site: &WorkSite<'_>, instance: &Instance, path: &str) -> Result<Result<Vec<u8>, String>, WorkloadError> {
    let timeout_ns = u64::try_from(FETCHING.as_nanos()).unwrap_or(u64::MAX);
    let request =
        Request::Fetch { address: instance.address, path: path.to_owned(), timeout_ns, limit_bytes: PAGE_BYTES };
    match site.client.call(request, site.timeout + FETCHING) {
        Ok(Reply::Fetched { status: 200, body }) => Ok(Ok(body)),
        Ok(Reply::Fetched { status, .. }) => Ok(Err(format!("it has status {status}"))),
        Ok(_) => Err(WorkSite::unexpected("client", "fetch a page")),
        Err(WireError::Refused { reason, .. }) => Ok(Err(reason)),
        Err(source) => Err(WorkloadError::Agent { side: "client", source }),
    }
}

/// Whether a page has that heading, escaped as pages are.
fn has_heading(body: &[u8], heading: &str) -> bool {
    let escaped = heading.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;");
    String::from_utf8_lossy(body).contains(&format!("<h1>{escaped}</h1>"))
}

/// Whether a file that was uploaded is whole and has the markers of one id.
fn is_right(body: &[u8], kind: StoredFile) -> Result<(), String> {
    if body.len() as u64 != kind.bytes() {
        return Err(format!("it has {} bytes, uploaded were {}", body.len(), kind.bytes()));
    }
    // `<tare ` and 16 digits.
    let id = body.get(6..22).and_then(|digits| std::str::from_utf8(digits).ok());
    let Some(id) = id.and_then(|digits| u64::from_str_radix(digits, 16).ok()) else {
        return Err("it does not begin with a marker".to_owned());
    };
    let mut blocks = body.chunks(usize::try_from(MARKER_EVERY).unwrap_or(usize::MAX)).zip(0..);
    let wrong = blocks.find(|(block, number)| {
        let marker = marker(id, *number);
        let length = block.len().min(MARKER_BYTES);
        block.get(..length) != marker.get(..length)
    });
    wrong.map_or(Ok(()), |(_, number)| Err(format!("block {number} does not have its marker")))
}

/// What is wrong with the answers, if the figures must not be used.
pub(super) fn too_many_errors(all: &RequestType, done: &SocialDone, most: f64) -> Option<String> {
    if all.requests == 0 {
        return Some("no operation was completed in steady state".to_owned());
    }
    let share = all.validation_errors as f64 / all.requests as f64;
    (share > most).then(|| {
        format!(
            "{} of {} operations ({:.2} %) had a wrong answer or none, more than {:.2} % ({})",
            all.validation_errors,
            all.requests,
            share * 100.0,
            most * 100.0,
            faults::shown(&done.faults)
        )
    })
}

/// Why an instance cannot have made all pages that its users saw: each operation has one at least.
pub(super) fn too_few_pages(instance: &Instance, done: &InstanceDone, pages: u64) -> Option<String> {
    let right: u64 = done.operations.iter().map(|one| one.requests.saturating_sub(one.validation_errors)).sum();
    (pages < right).then(|| {
        format!("{} counts {pages} pages, fewer than the {right} operations that its users found right", instance.name)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn added(people: u64, events: u64, attendances: u64) -> Added {
        Added { people, events, attendances }
    }

    #[test]
    fn each_count_that_is_off_is_reported_with_its_figures() {
        let loaded = added(2500, 1866, 90_000);
        let uploaded = Uploaded { added: added(3, 5, 7), in_doubt: added(0, 1, 0) };
        assert!(disagreement(loaded, &uploaded, added(2503, 1871, 90_007)).is_empty());
        assert!(disagreement(loaded, &uploaded, added(2503, 1872, 90_007)).is_empty(), "one is in doubt");
        let reasons = disagreement(loaded, &uploaded, added(2502, 1873, 90_008)).join("\n");
        for words in ["people: the database has 2502", "1873", "acknowledged 5 (and 1 in doubt)", "90008"] {
            assert!(reasons.contains(words), "{words}: {reasons}");
        }
        assert_eq!(files(&uploaded, 21), None);
        assert_eq!(files(&uploaded, 24), None, "one event is in doubt");
        assert!(files(&uploaded, 20).unwrap().contains("kept 20"));
        assert!(files(&uploaded, 25).is_some());
    }

    #[test]
    fn a_file_is_right_when_it_is_whole_and_of_one_id() {
        let kind = StoredFile::PersonThumbnail;
        let mut file = vec![b'.'; kind.bytes() as usize];
        for block in 0..2usize {
            let at = block * MARKER_EVERY as usize;
            file[at..at + MARKER_BYTES].copy_from_slice(&marker(77, block as u64));
        }
        assert_eq!(is_right(&file, kind), Ok(()));
        assert!(is_right(&file[1..], kind).unwrap_err().contains("bytes"));
        let mut other = file.clone();
        other[MARKER_EVERY as usize + 21] ^= 1;
        assert!(is_right(&other, kind).unwrap_err().contains("block 1"));
        assert!(is_right(&vec![b'.'; file.len()], kind).unwrap_err().contains("marker"));
    }

    #[test]
    fn errors_beyond_their_share_are_reported_by_kind() {
        let all = RequestType { requests: 1000, validation_errors: 6, ..RequestType::default() };
        let done = SocialDone { faults: vec![("timeout".into(), 2), ("marker".into(), 4)], ..SocialDone::default() };
        let reason = too_many_errors(&all, &done, 0.005).unwrap();
        assert!(reason.contains("0.60 %") && reason.contains("marker: 4, timeout: 2"), "{reason}");
        assert_eq!(too_many_errors(&all, &done, 0.006), None);
        assert!(too_many_errors(&RequestType::default(), &done, 1.0).is_some());
    }

    #[test]
    fn headings_are_looked_for_as_they_are_escaped() {
        assert!(has_heading(b"..<h1>a &lt;b&gt; &amp; c</h1>..", "a <b> & c"));
        assert!(!has_heading(b"<h1>other</h1>", "a"));
    }
}
