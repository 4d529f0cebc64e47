//! What is in the application's pages, files and rows: computed from numbers, to the byte as the application and the loader have it.

use tare_model::marker::{FNV_BASIS, fnv1a};

use super::spec::{Cycle, Operation, StoredFile};

impl Operation {
    /// Its place in the tables.
    pub const fn index(self) -> usize {
        self as usize
    }

    /// Static files that belong to its page, beside those of the whole site.
    pub const fn static_files(self) -> u32 {
        match self {
            Self::Home => 4,
            Self::Login => 0,
            Self::TagSearch | Self::PersonDetail => 1,
            Self::EventDetail => 9,
            Self::AddPerson | Self::AddEvent => 2,
        }
    }
}

/// Static files of the whole site.
pub const SITE_FILES: u32 = 29;

/// Address and length (bytes) of the `n`-th static file: of the site with `None`, else of an operation's page. n from 0 to below
/// [`SITE_FILES`], or [`Operation::static_files`].
///
/// The benchmark says how many there are, and not how long: every fifth is a script of 12 KiB, every fifth after it a style sheet
/// of 6 KiB, the others small images of 1.5 KiB.
pub fn static_file(of: Option<Operation>, n: u32) -> (String, u64) {
    let (ending, bytes) = match n % 5 {
        0 => ("js", 12 << 10),
        1 => ("css", 6 << 10),
        _ => ("gif", 3 << 9),
    };
    (format!("/static/{}/{n:02}.{ending}", of.map_or("site", Operation::name)), bytes)
}

impl StoredFile {
    /// All.
    pub const ALL: [Self; 5] =
        [Self::PersonImage, Self::PersonThumbnail, Self::EventImage, Self::EventThumbnail, Self::EventDocument];

    /// The kind and the person or event of a path that [`Self::path`] made.
    pub fn parse(path: &str) -> Option<(Self, u64)> {
        let (of_person, rest) = match path.strip_prefix("/person/") {
            Some(rest) => (true, rest),
            None => (false, path.strip_prefix("/event/")?),
        };
        let (kind, digits) = if let Some(digits) = rest.strip_suffix("t.jpg") {
            (if of_person { Self::PersonThumbnail } else { Self::EventThumbnail }, digits)
        } else if let Some(digits) = rest.strip_suffix(".jpg") {
            (if of_person { Self::PersonImage } else { Self::EventImage }, digits)
        } else {
            (Self::EventDocument, rest.strip_suffix(".pdf").filter(|_| !of_person)?)
        };
        let id: u64 = digits.parse().ok()?;
        // No sign, no leading zero: each file has one path.
        (kind.path(id) == path).then_some((kind, id))
    }
}

/// What the markers of a loaded file are made with ([`tare_model::marker::marker`]): its path, in the store of one instance of the application
/// (from 1). Of a file that a user has uploaded the driver chooses it.
pub fn stored_file_id(instance: u32, kind: StoredFile, id: u64) -> u64 {
    fnv1a(FNV_BASIS, format!("/{instance}{}", kind.path(id)).as_bytes())
}

/// A number that follows from the seed, what it is for and a number: uniform over 64 bits (SplitMix64's mixing).
pub const fn mix(seed: u64, what: u64, number: u64) -> u64 {
    let mut z = seed ^ what.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ number.wrapping_mul(0xd1b5_4a32_d192_ed03);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Title of a loaded event. It follows from the seed, which the application does not know: who shows it has asked the database.
pub fn event_title(seed: u64, event: u64) -> String {
    format!("Event {event} {:012x}", mix(seed, 1, event) >> 16)
}

/// The full name of a loaded person, as their page has it: first name and last name.
pub fn person_name(seed: u64, person: u64) -> (String, String) {
    (format!("First{:06x}", mix(seed, 2, person) >> 40), format!("Last{:08x}", mix(seed, 3, person) >> 32))
}

/// Name that a person logs in with; a loaded person's password is their number.
pub fn user_name(person: u64) -> String {
    format!("user{person}")
}

/// Name of a tag.
pub fn tag_name(tag: u64) -> String {
    format!("tag{tag}")
}

impl Cycle {
    /// Mean of what is drawn, seconds, the shortest cycles left out of account: `m (1 - e^(-c/m))` for mean m clipped at c.
    pub fn mean_s(&self) -> f64 {
        let (mean, most) = (self.mean_ns as f64 / 1e9, self.most_ns as f64 / 1e9);
        if mean <= 0.0 { 0.0 } else { mean * (1.0 - (-most / mean).exp()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stored_file_has_one_path() {
        for kind in StoredFile::ALL {
            assert_eq!(StoredFile::parse(&kind.path(17)), Some((kind, 17)));
        }
        let bad =
            ["/person/017.jpg", "/person/+1.jpg", "/person/1.pdf", "/event/.jpg", "/event/1t.pdf", "/event/1", "1.jpg"];
        assert!(bad.iter().all(|path| StoredFile::parse(path).is_none()));
        assert_ne!(stored_file_id(1, StoredFile::EventImage, 3), stored_file_id(2, StoredFile::EventImage, 3));
    }

    #[test]
    fn the_mean_cycle_is_a_little_below_that_of_the_distribution() {
        assert!((Cycle::default().mean_s() - 4.9663).abs() < 1e-4);
    }
}
