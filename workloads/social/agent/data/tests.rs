#![allow(clippy::unwrap_used)]
use std::collections::{BTreeMap, BTreeSet};

use tare_model::marker::{FNV_BASIS, fnv1a};

use super::*;

/// 40 users: 4,000 people, 987 tags, 2,961 events.
fn scale() -> Scale {
    Scale::of(40)
}

fn source() -> Source {
    Source::new(5, scale())
}

/// The fields of all rows that `write` appends for a number.
fn rows(source: &Source, table: Table, number: u64) -> Vec<Vec<Vec<u8>>> {
    let mut out = Vec::new();
    let count = source.write(table, number, &mut out);
    let mut bytes = out.as_slice();
    let mut take = |n: usize| {
        let (now, later) = bytes.split_at(n);
        bytes = later;
        now
    };
    let rows: Vec<Vec<Vec<u8>>> = (0..count)
        .map(|_| {
            let columns = u16::from_be_bytes(take(2).try_into().unwrap());
            (0..columns)
                .map(|_| {
                    let length = u32::from_be_bytes(take(4).try_into().unwrap());
                    take(length as usize).to_vec()
                })
                .collect()
        })
        .collect();
    assert!(bytes.is_empty(), "{table:?} {number}");
    rows
}

fn text(field: &[u8]) -> &str {
    std::str::from_utf8(field).unwrap()
}

fn integer(field: &[u8]) -> u64 {
    match field.len() {
        2 => u64::from(u16::from_be_bytes(field.try_into().unwrap())),
        4 => u64::from(u32::from_be_bytes(field.try_into().unwrap())),
        _ => u64::from_be_bytes(field.try_into().unwrap()),
    }
}

/// Whether a count of so many throws of `probability` is within six standard deviations.
fn is_near(count: u64, throws: u64, probability: f64) -> bool {
    let (mean, throws) = (throws as f64 * probability, throws as f64);
    (count as f64 - mean).abs() <= 6.0 * (throws * probability * (1.0 - probability)).sqrt()
}

/// Whether all values of `low..=high` came about equally often, and no others.
fn is_uniform(values: impl Iterator<Item = u64>, (low, high): (u64, u64)) -> bool {
    let mut counts = BTreeMap::new();
    values.for_each(|value| *counts.entry(value).or_insert(0_u64) += 1);
    let all: u64 = counts.values().sum();
    let share = 1.0 / (high - low + 1) as f64;
    counts.keys().copied().eq(low..=high) && counts.values().all(|count| is_near(*count, all, share))
}

fn is_distinct(numbers: &[u64]) -> bool {
    numbers.iter().collect::<BTreeSet<_>>().len() == numbers.len()
}

fn table_hash(source: &Source, table: Table) -> u64 {
    let (mut hash, mut out) = (FNV_BASIS, Vec::new());
    for number in 1..=table.numbers(&source.scale) {
        out.clear();
        source.write(table, number, &mut out);
        hash = fnv1a(hash, &out);
    }
    hash
}

/// Another result is another generation: `GENERATION` in `spec.rs` changes with it.
const GOLDEN: [(Table, u64); 10] = [
    (Table::Address, 0x1f8c_0842_8455_92bf),
    (Table::Person, 0x3369_375d_7969_c7c7),
    (Table::Event, 0x30c0_2b45_47a6_6246),
    (Table::Comment, 0x878b_fb10_4542_8a66),
    (Table::IdGen, 0x2ed2_476c_9033_98f6),
    (Table::Invitation, 0x3e5a_bee9_cddf_7b8b),
    (Table::Friend, 0xc936_4859_e0c3_c865),
    (Table::Attendee, 0x00f6_81c1_eb5a_e5c4),
    (Table::Tag, 0xa927_b89d_25f6_adab),
    (Table::EventTag, 0x484d_752b_5c3d_f54a),
];

#[test]
fn a_seed_gives_the_same_rows_everywhere_and_another_one_others() {
    let (first, other) = (Source::new(1, Scale::of(25)), Source::new(2, Scale::of(25)));
    let hashes = GOLDEN.map(|(table, _)| (table, format!("{:016x}", table_hash(&first, table))));
    assert_eq!(hashes, GOLDEN.map(|(table, hash)| (table, format!("{hash:016x}"))));
    for (table, hash) in GOLDEN {
        assert_ne!(hash, table_hash(&other, table), "{table:?}");
    }
}

#[test]
fn people_have_two_to_28_friends_that_are_others() {
    let source = source();
    let all: Vec<Vec<u64>> = (1..=4_000).map(|person| source.friends(person)).collect();
    assert!(is_uniform(all.iter().map(|friends| friends.len() as u64), FRIENDS));
    for (person, friends) in (1..).zip(&all) {
        assert!(is_distinct(friends) && !friends.contains(&person));
        assert!(friends.iter().all(|friend| (1..=4_000).contains(friend)));
        let rows = rows(&source, Table::Friend, person);
        let named: Vec<String> = friends.iter().map(|friend| format!("user{friend}")).collect();
        assert!(rows.iter().all(|row| row[0] == format!("user{person}").as_bytes()));
        assert!(rows.iter().map(|row| text(&row[1])).eq(named.iter().map(String::as_str)));
    }
    // Everybody is as likely to be named: halves get a half each.
    let all: Vec<u64> = all.into_iter().flatten().collect();
    assert!(is_near(all.iter().filter(|friend| **friend <= 2_000).count() as u64, all.len() as u64, 0.5));
}

#[test]
fn events_have_ten_to_100_attendees_each_once() {
    let source = source();
    let all: Vec<Vec<u64>> = (1..=2_961).map(|event| source.attendees(event)).collect();
    assert!(is_uniform(all.iter().map(|attendees| attendees.len() as u64), ATTENDEES));
    for (event, attendees) in (1..).zip(&all) {
        assert!(is_distinct(attendees) && attendees.iter().all(|person| (1..=4_000).contains(person)));
        let rows = rows(&source, Table::Attendee, event);
        assert!(rows.len() == attendees.len() && rows.iter().all(|row| integer(&row[1]) == event));
    }
}

#[test]
fn comments_are_numbered_through_and_make_the_score() {
    let source = source();
    let (mut next, mut counts, mut ratings, mut lengths) = (1, Vec::new(), Vec::new(), Vec::new());
    for event in 1..=2_961 {
        let comments = rows(&source, Table::Comment, event);
        let row = rows(&source, Table::Event, event).remove(0);
        counts.push(comments.len() as u64);
        let mut score = 0;
        for comment in &comments {
            assert_eq!((integer(&comment[0]), integer(&comment[2])), (next, event));
            next += 1;
            score += integer(&comment[6]);
            ratings.push(integer(&comment[6]));
            lengths.push(comment[3].len() as u64);
            let (announced, written) = (integer(&row[9]), integer(&comment[4]));
            assert!(announced <= written && written <= NOW_S * 1_000_000);
            assert_eq!(comment[4], comment[5]);
        }
        assert_eq!((integer(&row[13]), integer(&row[14])), (score, comments.len() as u64));
    }
    assert!(is_uniform(counts.into_iter(), (0, COMMENTS_MAX)));
    assert!(is_uniform(ratings.into_iter(), RATING));
    assert!(lengths.iter().all(|length| (COMMENT_LENGTH.0..=COMMENT_LENGTH.1).contains(length)));
    assert!(lengths.contains(&10) && lengths.contains(&1_000));
    let mean = lengths.iter().sum::<u64>() as f64 / lengths.len() as f64;
    assert!((mean - 505.0).abs() < 12.0, "{mean}");
    let ids: Vec<(String, u64)> = (1..=6)
        .map(|n| rows(&source, Table::IdGen, n).remove(0))
        .map(|row| (text(&row[0]).to_owned(), integer(&row[1])))
        .collect();
    let expected = [
        ("person", 4_001),
        ("socialevent", 2_962),
        ("address", 6_962),
        ("comments_rating", next),
        ("invitation", 4_001),
        ("socialeventtag", 988),
    ];
    assert_eq!(ids, expected.map(|(key, next)| (key.to_owned(), next)));
}

#[test]
fn tags_are_negative_exponential_with_a_mean_of_a_tenth_and_their_references_right() {
    let source = Source::new(9, Scale::of(100));
    let (tags, mean) = (2_311, 231.1);
    let all: Vec<Vec<u64>> = (1..=6_933).map(|event| source.tags(event)).collect();
    assert!(is_uniform(all.iter().map(|tags| tags.len() as u64), TAGS));
    assert!(all.iter().all(|of_event| is_distinct(of_event) && of_event.iter().all(|tag| (1..=tags).contains(tag))));
    // The first of each event is drawn freely, those after it from what is left.
    let first: Vec<u64> = all.iter().filter_map(|tags| tags.first().copied()).collect();
    for bound in [23, 116, 231, 462, 1_155] {
        let below = first.iter().filter(|tag| **tag <= bound).count() as u64;
        let expected = 1.0 - (-(bound as f64) / mean).exp();
        assert!(is_near(below, first.len() as u64, expected), "{below} of {} up to {bound}", first.len());
    }
    let mut references = vec![0; tags as usize];
    all.iter().flatten().for_each(|tag| references[*tag as usize - 1] += 1);
    for tag in 1..=tags {
        let row = rows(&source, Table::Tag, tag).remove(0);
        assert_eq!((integer(&row[0]), text(&row[1])), (tag, format!("tag{tag}").as_str()));
        assert_eq!(integer(&row[2]), references[tag as usize - 1]);
    }
}

#[test]
fn of_few_tags_an_event_has_all_if_it_must() {
    let scale = Scale { people: 200, tags: 3, events: 500 };
    let source = Source::new(1, scale);
    let all: Vec<Vec<u64>> = (1..=500).map(|event| source.tags(event)).collect();
    assert!(all.iter().all(|tags| is_distinct(tags) && (1..=3).contains(&tags.len())));
    assert!(all.iter().any(|tags| tags.len() == 3));
}

#[test]
fn events_lie_ahead_and_were_announced_before() {
    const SPAN: u64 = DAYS * 86_400_000_000;
    let source = source();
    let (mut sums, mut lengths) = ([0_u64; 2], Vec::new());
    let now = NOW_S * 1_000_000;
    for event in 1..=2_961 {
        let row = rows(&source, Table::Event, event).remove(0);
        assert_eq!((integer(&row[0]), text(&row[1])), (event, event_title(5, event).as_str()));
        assert!((EVENT_SUMMARY.0..=EVENT_SUMMARY.1).contains(&(row[2].len() as u64)));
        lengths.push(row[3].len() as u64);
        let submitter: u64 = text(&row[4]).strip_prefix("user").unwrap().parse().unwrap();
        assert!((1..=4_000).contains(&submitter) && integer(&row[5]) == 4_000 + event);
        let (ahead, before) = (integer(&row[8]) - now, now - integer(&row[9]));
        assert!(ahead <= SPAN && before <= SPAN && ahead % 60_000_000 == 0);
        (sums[0], sums[1]) = (sums[0] + ahead / 1_000_000, sums[1] + before / 1_000_000);
        let paths = [format!("/event/{event}.jpg"), format!("/event/{event}t.jpg"), format!("/event/{event}.pdf")];
        assert!(row[10..13].iter().map(|field| text(field)).eq(paths.iter().map(String::as_str)));
        assert_eq!(integer(&row[15]), 0);
    }
    // Uniform: the mean is a half, its standard deviation 540 / sqrt(12 * 2961) days.
    assert!(sums.iter().all(|sum| (*sum as f64 / 2_961.0 / 86_400.0 - 270.0).abs() < 6.0 * 2.9), "{sums:?}");
    assert!(lengths.iter().all(|length| (DESCRIPTION.0..=DESCRIPTION.1).contains(length)));
    assert!(lengths.contains(&50) && lengths.contains(&495));
}

#[test]
fn people_log_in_with_their_number_and_have_their_own_pictures() {
    let source = source();
    let (mut lengths, mut begins) = (Vec::new(), BTreeSet::new());
    for person in 1..=4_000 {
        let row = rows(&source, Table::Person, person).remove(0);
        let (first, last) = person_name(5, person);
        assert_eq!((text(&row[1]), text(&row[2])), (user_name(person).as_str(), person.to_string().as_str()));
        assert_eq!((text(&row[3]), text(&row[4])), (first.as_str(), last.as_str()));
        lengths.push(row[8].len() as u64);
        let summary = text(&row[8]);
        assert!(!summary.contains(['&', '<', '>', '"', '\\']) && summary.is_ascii() && summary.ends_with('.'));
        begins.insert(summary[..40].to_owned());
        assert_eq!(text(&row[9]), format!("/person/{person}.jpg"));
        assert_eq!(text(&row[10]), format!("/person/{person}t.jpg"));
        let address = rows(&source, Table::Address, integer(&row[11])).remove(0);
        assert_eq!(integer(&address[0]), person);
        assert_eq!(f64::from_bits(integer(&address[7])).to_bits(), PLACE.0.to_bits());
    }
    assert!(lengths.iter().all(|length| (PERSON_SUMMARY.0..=PERSON_SUMMARY.1).contains(length)));
    let mean = lengths.iter().sum::<u64>() as f64 / lengths.len() as f64;
    // Its standard deviation: 2250 / sqrt(12 * 4000).
    assert!((mean - 1_375.0).abs() < 62.0, "{mean}");
    assert!(begins.len() > 3_500, "{}", begins.len());
}

#[test]
fn invitations_that_were_accepted_are_those_of_friends() {
    let source = source();
    let mut accepted = 0;
    for person in 1..=4_000 {
        let row = rows(&source, Table::Invitation, person).remove(0);
        let candidate: u64 = text(&row[2]).strip_prefix("user").unwrap().parse().unwrap();
        assert_eq!((integer(&row[0]), text(&row[1])), (person, format!("user{person}").as_str()));
        assert_eq!(source.friends(person).contains(&candidate), integer(&row[3]) == 1);
        assert_ne!(candidate, person);
        accepted += integer(&row[3]);
    }
    assert!(is_near(accepted, 4_000, 0.5));
}
