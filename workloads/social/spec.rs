//! The social web application: what users do, how often, how soon it must come, and how large its data are.
//!
//! Modelled on a published web benchmark of 2008 as a published study of 2011 drove it (`docs/reference/social.md` has the protocol between
//! driver, application, file store and database). What several programs must agree on to the byte is computed here alone.

use serde::{Deserialize, Serialize};
use tare_model::clean::Untrusted;
use tare_model::packed::Task;
use tare_model::sql::{SqlFailure, SqlServer};
use tare_model::trial::RequestType;

/// Changes whenever the same seed and scale give other rows, tables or indexes than before.
pub const GENERATION: u32 = 1;

/// What a user does at one time: one operation, made of one or several requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Operation {
    /// The home page: upcoming events and a cloud of tags.
    Home,
    /// Logs in, after logging out where the user is in.
    Login,
    /// Events with a tag.
    TagSearch,
    /// One event; now and then the user says that they will attend.
    EventDetail,
    /// One person.
    PersonDetail,
    /// Registers a new person, with a picture.
    AddPerson,
    /// Announces an event, with a picture and a document.
    AddEvent,
}

/// Operations that there are.
pub const OPERATIONS: usize = 7;

impl Operation {
    /// All, in the order of the tables below.
    pub const ALL: [Self; OPERATIONS] = [
        Self::Home,
        Self::Login,
        Self::TagSearch,
        Self::EventDetail,
        Self::PersonDetail,
        Self::AddPerson,
        Self::AddEvent,
    ];

    /// Name in metrics and reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Home => "home",
            Self::Login => "login",
            Self::TagSearch => "tag_search",
            Self::EventDetail => "event_detail",
            Self::PersonDetail => "person_detail",
            Self::AddPerson => "add_person",
            Self::AddEvent => "add_event",
        }
    }

    /// Largest 90th percentile of its response time, seconds, as the benchmark demands.
    pub const fn limit_s(self) -> f64 {
        match self {
            Self::Home | Self::Login => 1.0,
            Self::TagSearch | Self::EventDetail | Self::PersonDetail => 2.0,
            Self::AddPerson => 3.0,
            Self::AddEvent => 4.0,
        }
    }
}

/// What follows what, per cent: row from, column to, in the order of [`Operation::ALL`].
pub const TRANSITIONS: [[u8; OPERATIONS]; OPERATIONS] = [
    [0, 11, 52, 36, 0, 1, 0],
    [0, 0, 60, 20, 0, 0, 20],
    [21, 6, 41, 31, 0, 1, 0],
    [72, 21, 0, 0, 6, 1, 0],
    [52, 6, 0, 31, 11, 0, 0],
    [0, 0, 0, 0, 100, 0, 0],
    [0, 0, 0, 100, 0, 0, 0],
];

/// Share of each operation in the long run (0 to 1), in the order of [`Operation::ALL`]: the stationary distribution of
/// [`TRANSITIONS`], by as many steps of it as change nothing any more.
pub fn stationary() -> [f64; OPERATIONS] {
    let mut share = [1.0 / OPERATIONS as f64; OPERATIONS];
    for _ in 0..2000 {
        let mut next = [0.0; OPERATIONS];
        for (from, row) in share.iter().zip(&TRANSITIONS) {
            for (to, per_cent) in next.iter_mut().zip(row) {
                *to += from * f64::from(*per_cent) / 100.0;
            }
        }
        // Half a step, so that a chain that swings comes to rest as well.
        for (old, new) in share.iter_mut().zip(next) {
            *old = f64::midpoint(*old, new);
        }
    }
    share
}

/// A kind of file in the file store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StoredFile {
    /// A person's picture.
    PersonImage,
    /// The same, small.
    PersonThumbnail,
    /// An event's picture.
    EventImage,
    /// The same, small.
    EventThumbnail,
    /// An event's document.
    EventDocument,
}

impl StoredFile {
    /// Length, bytes.
    pub const fn bytes(self) -> u64 {
        match self {
            Self::PersonImage => 671_520,
            Self::PersonThumbnail => 5_758,
            Self::EventImage => 669_128,
            Self::EventThumbnail => 5_895,
            Self::EventDocument => 129_617,
        }
    }

    /// Path in the store, and behind `/image` or `/document` in the application: that of the person or event `id`.
    pub fn path(self, id: u64) -> String {
        match self {
            Self::PersonImage => format!("/person/{id}.jpg"),
            Self::PersonThumbnail => format!("/person/{id}t.jpg"),
            Self::EventImage => format!("/event/{id}.jpg"),
            Self::EventThumbnail => format!("/event/{id}t.jpg"),
            Self::EventDocument => format!("/event/{id}.pdf"),
        }
    }
}

/// Loaded people, tags and events: how many there are for so many users at one time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Scale {
    /// People, numbered from 1: [`user_name`], password is the number.
    pub people: u32,
    /// Tags, numbered from 1: [`tag_name`].
    pub tags: u32,
    /// Events, numbered from 1: [`event_title`].
    pub events: u32,
}

/// Fewest users that data are made for.
pub const USERS_MIN: u32 = 25;
/// People that are loaded for each user at one time.
pub const PEOPLE_A_USER: u32 = 100;

impl Scale {
    /// The scale for so many users at one time, 25 at least: 100 people a user, `5000 (1 - e^(-n/10000)) / (1 + e^(-n/10000))` tags for n
    /// people, three events a tag.
    pub fn of(users: u32) -> Self {
        let people = users.max(USERS_MIN).saturating_mul(PEOPLE_A_USER);
        let e = (-f64::from(people) / 10_000.0).exp();
        let tags = (5000.0 * (1.0 - e) / (1.0 + e)).round().max(1.0) as u32;
        Self { people, tags, events: 3 * tags }
    }

    /// An estimate of what the tables and indexes take, bytes; measured figures are in `docs/reference/social.md`.
    pub fn table_bytes(&self) -> u64 {
        // A person with a summary of 1.4 kB, 15 friends and an invitation; an event with 55 attendees, 10 comments of half a kB.
        u64::from(self.people) * 3_300 + u64::from(self.events) * 13_000
    }
}

/// Cycle times: from the start of one operation to that of the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cycle {
    /// Mean of the negative exponential distribution before clipping, nanoseconds.
    pub mean_ns: u64,
    /// What is longer is this long, nanoseconds.
    pub most_ns: u64,
    /// Shortest cycle that begins with the registration of a person, nanoseconds.
    pub add_person_ns: u64,
    /// Shortest cycle that begins with the announcement of an event, nanoseconds.
    pub add_event_ns: u64,
}

impl Default for Cycle {
    /// The benchmark's: mean 5 s, at most 25 s, at least 2 s and 3 s.
    fn default() -> Self {
        const S: u64 = 1_000_000_000;
        Self { mean_ns: 5 * S, most_ns: 25 * S, add_person_ns: 2 * S, add_event_ns: 3 * S }
    }
}

/// A database to be filled.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SocialLoad {
    /// The server; its database must be there and hold no table of these.
    pub server: SqlServer,
    /// Rows.
    pub scale: Scale,
    /// Seed: the same seed and scale give the same rows, on any number of connections.
    pub seed: u64,
    /// Connections that load side by side.
    pub connections: u32,
}

/// What filling a database came to.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct SocialLoaded {
    /// Table, rows, bytes sent for it.
    pub tables: Vec<(String, u64, u64)>,
    /// Seconds until the last row was there.
    pub rows_s: f64,
    /// Seconds from then on: indexes, keys and statistics.
    pub indexes_s: f64,
}

/// What the file store is given: whose pictures there are without anybody having uploaded them. Their contents follow from their path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoreSpec {
    /// People and events that are loaded in each instance's database.
    pub scale: Scale,
    /// Instances of the application, numbered from 1, each with files of its own.
    pub instances: u32,
    /// Directory for what users bring; there already, and empty.
    pub folder: String,
    /// How long the store waits before each answer, nanoseconds.
    pub delay_ns: u64,
}

/// What a driver of users is given. The targets of the drive are the instances of the application, in order; the clients of its closed
/// load are dealt to them in turn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SocialDrive {
    /// People, tags and events that each instance began with. There are at least 100 people for each of its users.
    pub scale: Scale,
    /// Seed that the data were loaded with.
    pub data_seed: u64,
    /// Cycle times.
    pub cycle: Cycle,
    /// Share of sessions that have all static files and ask whether they have changed (0 to 1); the others begin with none.
    pub revalidating: f64,
    /// Probability that a user who can attend an event says so (0 to 1).
    pub attend: f64,
    /// Whether contents are checked; false only to measure what checking costs.
    pub check: bool,
    /// An operation has failed once nothing has come of an answer for this long, nanoseconds.
    pub timeout_ns: u64,
    /// New people of this drive are called `new-NUMBER-...` with this number, which no other drive of the same data has.
    pub names: u64,
    /// Threads; users are dealt to them in turn.
    pub threads: u32,
}

/// What a driver of users did.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct SocialDone {
    /// By instance of the application, in order.
    pub instances: Vec<InstanceDone>,
    /// What was wrong with answers, by kind, such as `marker`, `heading`, `status 500`, `timeout`; all phases.
    pub faults: Vec<(String, u64)>,
    /// Connections that were opened, all phases.
    pub connections: u64,
    /// User memory of the driver's process when the load ended, over the users, without what pages under way need, bytes.
    pub memory_per_user_bytes: u64,
}

/// What was done with one instance of the application. Of the measured window unless it says otherwise.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct InstanceDone {
    /// Users.
    pub users: u32,
    /// By operation, in the order of [`Operation::ALL`]. `good`: within [`Operation::limit_s`]; `tolerable` is not used; `target` is the
    /// stationary share.
    pub operations: Vec<RequestType>,
    /// Cycles that ended in the window, the sum of their lengths as drawn, and as they were, seconds.
    pub cycles: (u64, f64, f64),
    /// Requests, with those of static files and pictures.
    pub requests: u64,
    /// Of which were answered with "not modified".
    pub not_modified: u64,
    /// What the acceptance of the benchmark looks at.
    pub home: PageLook,
    /// The same of events' pages.
    pub event: PageLook,
    /// Users who said that they will attend.
    pub attended: u64,
    /// Views of events in which the user could have said so.
    pub could_attend: u64,
    /// Acknowledged in all phases: people, events, attendances; and those that were sent and never answered.
    pub added: Added,
    /// See `added`: they may be there or not.
    pub in_doubt: Added,
}

/// Pictures of pages of one kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct PageLook {
    /// Pages.
    pub pages: u64,
    /// References to pictures in them.
    pub references: u64,
    /// Pictures that were loaded for them.
    pub loaded: u64,
    /// Bytes of those.
    pub bytes: u64,
}

/// What users uploaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Added {
    /// People.
    pub people: u64,
    /// Events.
    pub events: u64,
    /// Attendances.
    pub attendances: u64,
}

impl InstanceDone {
    /// Adds what others did with the instance, all but operations by their kind.
    pub fn add_counts(&mut self, other: &Self) {
        self.users += other.users;
        let (cycles, drawn_s, were_s) = other.cycles;
        self.cycles = (self.cycles.0 + cycles, self.cycles.1 + drawn_s, self.cycles.2 + were_s);
        self.requests += other.requests;
        self.not_modified += other.not_modified;
        self.home.add(other.home);
        self.event.add(other.event);
        self.attended += other.attended;
        self.could_attend += other.could_attend;
        self.added.add(other.added);
        self.in_doubt.add(other.in_doubt);
    }
}

impl PageLook {
    /// Adds other pages.
    pub const fn add(&mut self, other: Self) {
        self.pages += other.pages;
        self.references += other.references;
        self.loaded += other.loaded;
        self.bytes += other.bytes;
    }
}

impl Added {
    /// Adds what other users uploaded.
    pub const fn add(&mut self, other: Self) {
        self.people += other.people;
        self.events += other.events;
        self.attendances += other.attendances;
    }
}

impl Task for SocialDrive {
    const KIND: &'static str = "social";
    type Outcome = SocialDone;
}

impl Task for SocialLoad {
    const KIND: &'static str = "fill the social application's database";
    type Outcome = Result<SocialLoaded, SqlFailure>;
}

impl Task for StoreSpec {
    const KIND: &'static str = "social files";
    type Outcome = ();
}

impl Untrusted for SocialLoaded {
    fn clean(&mut self) {
        self.tables.clean();
    }
}

impl Untrusted for SocialDone {
    fn clean(&mut self) {
        self.faults.clean();
        self.instances.clean();
    }
}

impl Untrusted for InstanceDone {
    fn clean(&mut self) {
        self.operations.clean();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rows_add_up_and_the_long_run_is_the_published_one() {
        for row in TRANSITIONS {
            assert_eq!(row.iter().map(|&share| u32::from(share)).sum::<u32>(), 100);
        }
        let published = [26.15, 10.22, 33.45, 24.68, 2.61, 0.84, 2.05];
        for (share, published) in stationary().iter().zip(published) {
            assert!((share * 100.0 - published).abs() < 0.01, "{share} is not {published}");
        }
    }

    #[test]
    fn tags_follow_the_formula_and_there_are_three_events_a_tag() {
        // n = 10,000 people: 5000 (1 - e^-1) / (1 + e^-1) = 2310.6.
        assert_eq!(Scale::of(100), Scale { people: 10_000, tags: 2311, events: 6933 });
        assert_eq!(Scale::of(1), Scale::of(25), "25 users at least");
        assert!(Scale::of(100_000).tags <= 5000);
    }
}
