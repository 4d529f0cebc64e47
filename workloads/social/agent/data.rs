//! The rows that a database of the social application begins with: each a function of the seed, the scale, its table and its number.
//!
//! So any number of connections loads the same rows, in any chunks. How many there are of each kind, and how they are distributed, is the
//! published benchmark's (`docs/reference/social.md`, "Data"); words and names are of our own. What several tables say of one event
//! agrees: its score is that of its comments, the references to a tag are as many as events have it.

mod text;

use crate::social::contents::{event_title, mix, person_name, tag_name, user_name};
use crate::social::spec::{Scale, StoredFile};

use self::text::Prose;
use crate::fill::copy;
use crate::fill::draw::{Draw, Key};

/// Friends of a person, least and most. Each names their own.
pub const FRIENDS: (u64, u64) = (2, 28);
/// People who attend an event, least and most.
pub const ATTENDEES: (u64, u64) = (10, 100);
/// Most comments on an event.
pub const COMMENTS_MAX: u64 = 20;
/// Characters of a comment, least and most.
pub const COMMENT_LENGTH: (u64, u64) = (10, 1_000);
/// Rating of a comment, least and most.
pub const RATING: (u64, u64) = (2, 5);
/// Tags of an event, least and most.
pub const TAGS: (u64, u64) = (1, 7);
/// Days that events lie ahead, and that they were announced before, at most.
pub const DAYS: u64 = 540;
/// Characters of the summary of a person, least and most.
pub const PERSON_SUMMARY: (u64, u64) = (250, 2_500);
/// Characters of the description of an event, least and most.
pub const DESCRIPTION: (u64, u64) = (50, 495);
/// Characters of the summary of an event, least and most.
pub const EVENT_SUMMARY: (u64, u64) = (50, 100);
/// Fewest people: an event has up to 100 of them, and a person friends other than themselves.
pub const PEOPLE_MIN: u32 = 101;
/// 2026-01-01T00:00:00, the application's own beginning, in seconds from 2000-01-01, from which PostgreSQL counts.
pub const NOW_S: u64 = 9_497 * 86_400;
/// What the geocoder answers, degrees.
pub const PLACE: (f64, f64) = (33.0, -177.0);
/// Draws of a tag that the event has already, before the first that it has not is taken: of few tags the last ones hardly ever come.
const TRIES: u32 = 64;

const ZONES: [&str; 6] = ["ACT", "CST", "EST", "GMT", "MST", "PST"];
const STATES: [&str; 10] = ["AZ", "CA", "CO", "IL", "MA", "NY", "OR", "TX", "UT", "WA"];

/// A table, in the order of `schema.sql`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Table {
    /// Addresses of people, then of events.
    Address,
    /// People.
    Person,
    /// Events.
    Event,
    /// Comments on events.
    Comment,
    /// Next free numbers.
    IdGen,
    /// Who asks whom to be a friend.
    Invitation,
    /// Friends.
    Friend,
    /// Who attends.
    Attendee,
    /// Tags.
    Tag,
    /// Tags of events.
    EventTag,
}

impl Table {
    /// All of them.
    pub const ALL: [Self; 10] = [
        Self::Address,
        Self::Person,
        Self::Event,
        Self::Comment,
        Self::IdGen,
        Self::Invitation,
        Self::Friend,
        Self::Attendee,
        Self::Tag,
        Self::EventTag,
    ];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Address => "address",
            Self::Person => "person",
            Self::Event => "socialevent",
            Self::Comment => "comments_rating",
            Self::IdGen => "id_gen",
            Self::Invitation => "invitation",
            Self::Friend => "person_person",
            Self::Attendee => "person_socialevent",
            Self::Tag => "socialeventtag",
            Self::EventTag => "socialeventtag_socialevent",
        }
    }

    /// How many numbers its rows are made from. What hangs on a person or an event is made from theirs.
    pub fn numbers(self, scale: &Scale) -> u64 {
        let (people, events) = (u64::from(scale.people), u64::from(scale.events));
        match self {
            Self::Address => people + events,
            Self::Person | Self::Invitation | Self::Friend => people,
            Self::Event | Self::Comment | Self::Attendee | Self::EventTag => events,
            Self::IdGen => IDS.len() as u64,
            Self::Tag => u64::from(scale.tags),
        }
    }

    /// What the rows of a number cost the server in the mean, in no unit: fields, half a dozen more for each row itself, and one for
    /// each hundred characters of a long text.
    pub const fn weight(self) -> u64 {
        match self {
            Self::Address => 15,
            Self::Person => 32,
            Self::Event => 25,
            Self::Comment => 180,
            Self::IdGen => 8,
            Self::Invitation => 10,
            Self::Friend => 120,
            Self::Attendee => 440,
            Self::Tag => 9,
            Self::EventTag => 32,
        }
    }
}

/// Keys of `id_gen`, and the table whose next free number each has.
pub const IDS: [(&str, Table); 6] = [
    ("person", Table::Person),
    ("socialevent", Table::Event),
    ("address", Table::Address),
    ("comments_rating", Table::Comment),
    ("invitation", Table::Invitation),
    ("socialeventtag", Table::Tag),
];

/// A comment, without its words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Comment {
    /// Who wrote it.
    pub person: u64,
    /// Of 2 to 5.
    pub rating: u64,
    /// When, seconds from 2000-01-01.
    pub written_s: u64,
    /// Its words are drawn from here.
    words: u64,
    /// Characters.
    pub length: u64,
}

/// All rows of a database.
#[derive(Debug)]
pub struct Source {
    seed: u64,
    scale: Scale,
    prose: Prose,
    /// Number of the first comment of each event, and behind them that of the next new comment.
    first_comments: Vec<u64>,
    /// Loaded events of each tag.
    references: Vec<u32>,
}

impl Source {
    /// The rows of a seed and a scale. The scale must have people enough ([`PEOPLE_MIN`]).
    pub fn new(seed: u64, scale: Scale) -> Self {
        let events = u64::from(scale.events);
        let mut source =
            Self { seed, scale, prose: Prose::new(seed), first_comments: Vec::new(), references: Vec::new() };
        let mut next = 1;
        source.first_comments.push(next);
        source.references.resize(scale.tags as usize, 0);
        for event in 1..=events {
            next += source.comments(event).len() as u64;
            source.first_comments.push(next);
            for tag in source.tags(event) {
                source.references[tag as usize - 1] += 1;
            }
        }
        source
    }

    /// What is drawn for a row. What one table draws, another can draw again.
    fn draw(&self, table: Table, number: u64) -> Draw {
        Key::new(self.seed, table as u64 + 1).row(number)
    }

    /// Appends the rows of a number, in the format of [`copy`]. Returns how many there were.
    pub fn write(&self, table: Table, number: u64, out: &mut Vec<u8>) -> u64 {
        match table {
            Table::Address => self.address(number, out),
            Table::Person => self.person(number, out),
            Table::Event => self.event(number, out),
            Table::Comment => return self.comment_rows(number, out),
            Table::IdGen => self.id(number, out),
            Table::Invitation => self.invitation(number, out),
            Table::Friend => return self.friend_rows(number, out),
            Table::Attendee => return self.attendee_rows(number, out),
            Table::Tag => self.tag(number, out),
            Table::EventTag => return self.event_tag_rows(number, out),
        }
        1
    }

    /// A loaded person.
    fn anybody(&self, draw: &mut Draw) -> u64 {
        draw.from(1, u64::from(self.scale.people))
    }

    /// Whom a person names as friends: 2 to 28 others, each once.
    pub fn friends(&self, person: u64) -> Vec<u64> {
        let mut draw = self.draw(Table::Friend, person);
        let count = draw.from(FRIENDS.0, FRIENDS.1) as usize;
        distinct(count, |_| self.anybody(&mut draw), |friend| friend != person)
    }

    /// Who attends an event: 10 to 100 people, each once.
    pub fn attendees(&self, event: u64) -> Vec<u64> {
        let mut draw = self.draw(Table::Attendee, event);
        let count = draw.from(ATTENDEES.0, ATTENDEES.1) as usize;
        distinct(count, |_| self.anybody(&mut draw), |_| true)
    }

    /// The tags of an event: 1 to 7, each once; each drawn by a negative exponential distribution whose mean is a tenth of the tags,
    /// clipped to those that there are.
    pub fn tags(&self, event: u64) -> Vec<u64> {
        let tags = u64::from(self.scale.tags);
        let mut draw = self.draw(Table::EventTag, event);
        let count = draw.from(TAGS.0, TAGS.1).min(tags) as usize;
        let mean = tags as f64 / 10.0;
        distinct(
            count,
            |tries| match tries {
                // Behind that, from the first.
                TRIES.. => u64::from(tries - TRIES) + 1,
                _ => 1 + ((draw.exponential() * mean) as u64).min(tags - 1),
            },
            |_| true,
        )
    }

    /// The comments on an event: 0 to 20, since it was announced.
    pub fn comments(&self, event: u64) -> Vec<Comment> {
        let announced_s = self.announced_s(event);
        let mut draw = self.draw(Table::Comment, event);
        (0..draw.from(0, COMMENTS_MAX))
            .map(|_| Comment {
                person: self.anybody(&mut draw),
                rating: draw.from(RATING.0, RATING.1),
                written_s: draw.from(announced_s, NOW_S),
                words: draw.bits(),
                length: draw.from(COMMENT_LENGTH.0, COMMENT_LENGTH.1),
            })
            .collect()
    }

    /// When an event was announced, seconds from 2000-01-01.
    pub fn announced_s(&self, event: u64) -> u64 {
        NOW_S - mix(self.seed, 4, event) % (DAYS * 86_400 + 1)
    }

    /// When an event is, a whole minute in seconds from 2000-01-01.
    pub fn takes_place_s(&self, event: u64) -> u64 {
        NOW_S + 60 * (mix(self.seed, 5, event) % (DAYS * 1_440 + 1))
    }

    /// Loaded events that have a tag.
    pub fn references(&self, tag: u64) -> u32 {
        self.references.get(tag.wrapping_sub(1) as usize).copied().unwrap_or(0)
    }

    /// Number of the first comment of an event; of the next event after the last, the next free one.
    pub fn first_comment(&self, event: u64) -> u64 {
        self.first_comments.get(event.wrapping_sub(1) as usize).copied().unwrap_or(0)
    }

    fn address(&self, number: u64, out: &mut Vec<u8>) {
        let mut draw = self.draw(Table::Address, number);
        copy::row(out, 9);
        copy::integer(out, number as u32);
        let house = copy::Decimal::new(draw.from(1, 9_999));
        copy::joined(out, &[house.bytes(), b" ", self.prose.word(&mut draw), b" Street"]);
        copy::text(out, b"");
        copy::joined(out, &[self.prose.word(&mut draw), b"ville"]);
        copy::text(out, pick(&STATES, &mut draw).as_bytes());
        copy::text(out, &draw.digits::<5>());
        copy::text(out, b"USA");
        copy::real(out, PLACE.0);
        copy::real(out, PLACE.1);
    }

    fn person(&self, number: u64, out: &mut Vec<u8>) {
        let mut draw = self.draw(Table::Person, number);
        let (first, last) = person_name(self.seed, number);
        let name = user_name(number);
        copy::row(out, 12);
        copy::integer(out, number as u32);
        copy::text(out, name.as_bytes());
        copy::text(out, copy::Decimal::new(number).bytes());
        copy::text(out, first.as_bytes());
        copy::text(out, last.as_bytes());
        copy::joined(out, &[name.as_bytes(), b"@mail.example"]);
        copy::text(out, &draw.digits::<10>());
        copy::text(out, pick(&ZONES, &mut draw).as_bytes());
        let length = draw.from(PERSON_SUMMARY.0, PERSON_SUMMARY.1);
        self.prose.write(draw.bits(), length, out);
        copy::text(out, StoredFile::PersonImage.path(number).as_bytes());
        copy::text(out, StoredFile::PersonThumbnail.path(number).as_bytes());
        copy::integer(out, number as u32);
    }

    fn event(&self, number: u64, out: &mut Vec<u8>) {
        let mut draw = self.draw(Table::Event, number);
        let comments = self.comments(number);
        copy::row(out, 16);
        copy::integer(out, number as u32);
        copy::text(out, event_title(self.seed, number).as_bytes());
        let length = draw.from(EVENT_SUMMARY.0, EVENT_SUMMARY.1);
        self.prose.write(draw.bits(), length, out);
        let length = draw.from(DESCRIPTION.0, DESCRIPTION.1);
        self.prose.write(draw.bits(), length, out);
        copy::text(out, user_name(self.anybody(&mut draw)).as_bytes());
        copy::integer(out, self.scale.people + number as u32);
        copy::text(out, &draw.digits::<10>());
        copy::text(out, pick(&ZONES, &mut draw).as_bytes());
        copy::timestamp(out, self.takes_place_s(number));
        copy::timestamp(out, self.announced_s(number));
        for kind in [StoredFile::EventImage, StoredFile::EventThumbnail, StoredFile::EventDocument] {
            copy::text(out, kind.path(number).as_bytes());
        }
        copy::integer(out, comments.iter().map(|comment| comment.rating as u32).sum());
        copy::integer(out, comments.len() as u32);
        copy::small(out, 0);
    }

    fn comment_rows(&self, event: u64, out: &mut Vec<u8>) -> u64 {
        let comments = self.comments(event);
        for (id, comment) in (self.first_comment(event)..).zip(&comments) {
            copy::row(out, 7);
            copy::integer(out, id as u32);
            copy::text(out, user_name(comment.person).as_bytes());
            copy::integer(out, event as u32);
            self.prose.write(comment.words, comment.length, out);
            copy::timestamp(out, comment.written_s);
            copy::timestamp(out, comment.written_s);
            copy::small(out, comment.rating as i16);
        }
        comments.len() as u64
    }

    fn id(&self, number: u64, out: &mut Vec<u8>) {
        let (key, table) = IDS[(number - 1) as usize % IDS.len()];
        let next = match table {
            Table::Comment => self.first_comments.last().copied().unwrap_or(1),
            _ => table.numbers(&self.scale) + 1,
        };
        copy::row(out, 2);
        copy::text(out, key.as_bytes());
        copy::integer(out, next as u32);
    }

    /// One invitation a person has sent: every second was accepted, and is that of a friend; the others wait for an answer.
    fn invitation(&self, number: u64, out: &mut Vec<u8>) {
        let mut draw = self.draw(Table::Invitation, number);
        let friends = self.friends(number);
        let accepted = draw.below(2) == 1;
        let stranger =
            |draw: &mut Draw| distinct(1, |_| self.anybody(draw), |other| other != number && !friends.contains(&other));
        let candidate = if accepted { friends.first().copied() } else { stranger(&mut draw).first().copied() };
        copy::row(out, 4);
        copy::integer(out, number as u32);
        copy::text(out, user_name(number).as_bytes());
        copy::text(out, user_name(candidate.unwrap_or(number)).as_bytes());
        copy::small(out, i16::from(accepted));
    }

    fn friend_rows(&self, person: u64, out: &mut Vec<u8>) -> u64 {
        let (name, friends) = (user_name(person), self.friends(person));
        for friend in &friends {
            copy::row(out, 2);
            copy::text(out, name.as_bytes());
            copy::text(out, user_name(*friend).as_bytes());
        }
        friends.len() as u64
    }

    fn attendee_rows(&self, event: u64, out: &mut Vec<u8>) -> u64 {
        let attendees = self.attendees(event);
        for person in &attendees {
            copy::row(out, 2);
            copy::text(out, user_name(*person).as_bytes());
            copy::integer(out, event as u32);
        }
        attendees.len() as u64
    }

    fn tag(&self, number: u64, out: &mut Vec<u8>) {
        copy::row(out, 3);
        copy::integer(out, number as u32);
        copy::text(out, tag_name(number).as_bytes());
        copy::integer(out, self.references(number));
    }

    fn event_tag_rows(&self, event: u64, out: &mut Vec<u8>) -> u64 {
        let tags = self.tags(event);
        for tag in &tags {
            copy::row(out, 2);
            copy::integer(out, *tag as u32);
            copy::integer(out, event as u32);
        }
        tags.len() as u64
    }
}

fn pick<'a>(of: &[&'a str], draw: &mut Draw) -> &'a str {
    of[draw.below(of.len() as u64) as usize]
}

/// So many different numbers that are good. `draw` receives the number of rejected draws since the last that was taken.
fn distinct(count: usize, mut draw: impl FnMut(u32) -> u64, good: impl Fn(u64) -> bool) -> Vec<u64> {
    let mut taken = Vec::with_capacity(count);
    let mut tries = 0;
    while taken.len() < count {
        let number = draw(tries);
        if good(number) && !taken.contains(&number) {
            taken.push(number);
            tries = 0;
        } else {
            tries += 1;
        }
    }
    taken
}

#[cfg(test)]
mod tests;
