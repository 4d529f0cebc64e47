//! What a request asks the store for.

use crate::social::contents::stored_file_id;
use crate::social::spec::{StoreSpec, StoredFile};

use super::answer::Answer;
use crate::head::number;

/// The parameters that the geocoder needs.
const PARTS: [&str; 4] = ["street", "city", "state", "zip"];

/// What to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// Send a loaded file.
    Computed {
        /// What its markers are made with.
        file: u64,
        /// Its kind.
        kind: StoredFile,
    },
    /// Send what was uploaded.
    Kept {
        /// Whose.
        instance: u32,
        /// Of which kind.
        kind: StoredFile,
        /// Of which person or event.
        id: u64,
    },
    /// Keep what is uploaded.
    Put {
        /// Whose.
        instance: u32,
        /// Of which kind.
        kind: StoredFile,
        /// Of which person or event.
        id: u64,
    },
    /// Tell where an address is.
    Place,
    /// None of that.
    Refused {
        /// What to say.
        answer: Answer,
    },
}

impl Way {
    /// What a method and a target mean to a store. What is no path of a file to the letter is none: nothing of it reaches the file system.
    pub fn of(method: &str, target: &str, spec: &StoreSpec) -> Self {
        let refused = |answer| Self::Refused { answer };
        let (path, query) = target.split_once('?').map_or((target, None), |(path, query)| (path, Some(query)));
        if path == "/geocode" {
            return match (method, query) {
                ("GET", Some(query)) if PARTS.iter().all(|part| has(query, part)) => Self::Place,
                ("GET", _) => refused(Answer::NO_ADDRESS),
                _ => refused(Answer::NO_METHOD),
            };
        }
        let Some((instance, kind, id)) = file(path, spec).filter(|_| query.is_none()) else {
            return refused(Answer::NO_PLACE);
        };
        match (method, is_loaded(kind, id, spec)) {
            ("GET", true) => Self::Computed { file: stored_file_id(instance, kind, id), kind },
            ("GET", false) => Self::Kept { instance, kind, id },
            ("PUT", true) => refused(Answer::LOADED),
            ("PUT", false) => Self::Put { instance, kind, id },
            _ => refused(Answer::NO_METHOD),
        }
    }
}

/// The instance, the kind and the person or event of a path such as `/1/event/17t.jpg`.
fn file(path: &str, spec: &StoreSpec) -> Option<(u32, StoredFile, u64)> {
    let rest = path.strip_prefix('/')?;
    let digits = &rest[..rest.find('/')?];
    // One path a file: no leading zero.
    let instance: u32 = number(digits.as_bytes()).filter(|_| !digits.starts_with('0'))?;
    let (kind, id) = StoredFile::parse(&rest[digits.len()..])?;
    ((1..=spec.instances).contains(&instance) && id > 0).then_some((instance, kind, id))
}

/// Whether a file is there without anybody having uploaded it.
fn is_loaded(kind: StoredFile, id: u64, spec: &StoreSpec) -> bool {
    let loaded = match kind {
        StoredFile::PersonImage | StoredFile::PersonThumbnail => spec.scale.people,
        StoredFile::EventImage | StoredFile::EventThumbnail | StoredFile::EventDocument => spec.scale.events,
    };
    id <= u64::from(loaded)
}

/// Whether a query has a parameter of this name.
fn has(query: &str, name: &str) -> bool {
    query.split('&').any(|part| part.split_once('=').is_some_and(|(of, _)| of == name))
}

#[cfg(test)]
mod tests {
    use crate::social::spec::Scale;

    use super::*;

    fn way(method: &str, target: &str) -> Way {
        let scale = Scale { people: 2_500, tags: 10, events: 30 };
        Way::of(method, target, &StoreSpec { scale, instances: 12, folder: String::new(), delay_ns: 0 })
    }

    #[test]
    fn loaded_files_are_computed_and_others_kept() {
        let file = stored_file_id(12, StoredFile::EventThumbnail, 30);
        assert_eq!(way("GET", "/12/event/30t.jpg"), Way::Computed { file, kind: StoredFile::EventThumbnail });
        let (instance, kind, id) = (1, StoredFile::EventImage, 31);
        assert_eq!(way("GET", "/1/event/31.jpg"), Way::Kept { instance, kind, id });
        assert_eq!(way("PUT", "/1/event/31.jpg"), Way::Put { instance, kind, id });
        assert_eq!(way("PUT", "/1/event/30.jpg"), Way::Refused { answer: Answer::LOADED });
        assert_eq!(way("DELETE", "/1/event/31.jpg"), Way::Refused { answer: Answer::NO_METHOD });
        let (kind, id) = (StoredFile::PersonImage, u64::MAX);
        assert_eq!(way("PUT", &format!("/1/person/{id}.jpg")), Way::Put { instance, kind, id });
    }

    #[test]
    fn what_is_no_path_of_a_file_to_the_letter_is_none() {
        for target in [
            "/",
            "*",
            "",
            "//",
            "/1",
            "/1/",
            "/0/person/1.jpg",
            "/13/person/1.jpg",
            "/01/person/1.jpg",
            "/+1/person/1.jpg",
            "/-1/person/1.jpg",
            "/4294967297/person/1.jpg",
            "/1/person/0.jpg",
            "/1/person/01.jpg",
            "/1/person/18446744073709551616.jpg",
            "/1/person/1.pdf",
            "/1/person/../person/1.jpg",
            "/1/../1/person/1.jpg",
            "/../1/person/1.jpg",
            "/1/person/%2e%2e/1.jpg",
            "/1/person/..",
            "/1/person/1.jpg/..",
            "/1/person/1.jpg?",
            "/1/person/1.jpg\0",
            "/1/house/1.jpg",
            "/1/event/1.JPG",
            "http://store/1/person/1.jpg",
            "/\u{fc}/person/1.jpg",
        ] {
            for method in ["GET", "PUT"] {
                assert_eq!(way(method, target), Way::Refused { answer: Answer::NO_PLACE }, "{method} {target}");
            }
        }
    }

    #[test]
    fn an_address_has_four_parts() {
        assert_eq!(way("GET", "/geocode?street=1+Main&city=a&state=CA&zip=94000"), Way::Place);
        assert_eq!(way("GET", "/geocode?zip=&city=&state=&street="), Way::Place);
        for target in ["/geocode", "/geocode?", "/geocode?street=1&city=2&state=3", "/geocode?street&city&state&zip"] {
            assert_eq!(way("GET", target), Way::Refused { answer: Answer::NO_ADDRESS }, "{target}");
        }
        assert_eq!(way("PUT", "/geocode?street=1&city=2&state=3&zip=4"), Way::Refused { answer: Answer::NO_METHOD });
    }
}
