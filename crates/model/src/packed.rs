//! What a workload's part in the tool and its part in the agent send each other. Nobody between them knows what it is.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::clean::Untrusted;
use crate::meter::{DecodeError, MAX_DECODED_BYTES, decode};

/// What the tool has an agent do for a workload: to drive load, to serve, or to answer a call.
pub trait Task: Serialize + DeserializeOwned {
    /// By this name the agent finds who does it. Of a call it says what is done, as in "the agent could not KIND".
    const KIND: &'static str;
    /// What comes back.
    type Outcome: Serialize + DeserializeOwned + Untrusted;
}

/// A task as it goes over the wire.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Packed {
    /// Its kind ([`Task::KIND`]).
    pub kind: String,
    /// The task in postcard's encoding.
    #[serde(with = "crate::bytes")]
    pub body: Vec<u8>,
}

/// Why something could not be packed or unpacked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "what one end of the channel sent the other for `{kind}` cannot be {tried}: {reason}; use the agent that came with this tare"
)]
pub struct PackError {
    /// The kind of task.
    pub kind: String,
    /// `packed` or `unpacked`.
    pub tried: &'static str,
    /// What the encoding says.
    pub reason: String,
}

impl Packed {
    /// Packs a task.
    ///
    /// # Errors
    /// When the encoding cannot hold it.
    pub fn of<T: Task>(task: &T) -> Result<Self, PackError> {
        Ok(Self { kind: T::KIND.to_owned(), body: pack(T::KIND, task)? })
    }

    /// The task.
    ///
    /// # Errors
    /// When it is none of this kind.
    pub fn unpack<T: Task>(&self) -> Result<T, PackError> {
        let of_another =
            || PackError { kind: T::KIND.to_owned(), tried: "unpacked", reason: format!("it is for `{}`", self.kind) };
        if self.kind == T::KIND { unpack(T::KIND, &self.body) } else { Err(of_another()) }
    }
}

/// Packs what came of a task.
///
/// # Errors
/// When the encoding cannot hold it.
pub fn pack_outcome<T: Task>(outcome: &T::Outcome) -> Result<Vec<u8>, PackError> {
    pack(T::KIND, outcome)
}

/// What came of a task, with its text made fit to be shown.
///
/// # Errors
/// When the bytes are no outcome of such a task.
pub fn unpack_outcome<T: Task>(body: &[u8]) -> Result<T::Outcome, PackError> {
    let mut outcome: T::Outcome = unpack(T::KIND, body)?;
    outcome.clean();
    Ok(outcome)
}

fn pack<T: Serialize>(kind: &str, value: &T) -> Result<Vec<u8>, PackError> {
    let failed =
        |error: postcard::Error| PackError { kind: kind.to_owned(), tried: "packed", reason: error.to_string() };
    postcard::to_extend(value, Vec::new()).map_err(failed)
}

fn unpack<T: DeserializeOwned>(kind: &str, body: &[u8]) -> Result<T, PackError> {
    let failed = |error: DecodeError| PackError { kind: kind.to_owned(), tried: "unpacked", reason: error.to_string() };
    decode(body, MAX_DECODED_BYTES).map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Greet(String);

    impl Task for Greet {
        const KIND: &'static str = "greet";
        type Outcome = Vec<String>;
    }

    #[test]
    fn a_task_and_its_outcome_come_through_and_text_is_cleaned() {
        let packed = Packed::of(&Greet("you".into())).unwrap();
        assert_eq!(packed.unpack::<Greet>().unwrap(), Greet("you".into()));
        let outcome = pack_outcome::<Greet>(&vec!["hello\u{1b}".to_owned()]).unwrap();
        assert_eq!(unpack_outcome::<Greet>(&outcome).unwrap(), ["hello\u{fffd}"]);
    }

    #[test]
    fn an_outcome_of_many_empty_texts_is_not_unpacked() {
        // Each is a byte here and 24 in memory.
        let swollen = pack_outcome::<Greet>(&vec![String::new(); MAX_DECODED_BYTES / 24]).unwrap();
        let refused = unpack_outcome::<Greet>(&swollen).unwrap_err().to_string();
        assert!(refused.contains("would take more than"), "{refused}");
    }

    #[test]
    fn bytes_of_something_else_are_refused_by_name() {
        let packed = Packed::of(&Greet("you".into())).unwrap();
        let refused = |packed: &Packed| packed.unpack::<Greet>().unwrap_err().to_string();
        let other = Packed { kind: "part".into(), ..packed.clone() };
        assert!(refused(&other).contains("`greet` cannot be unpacked: it is for `part`"), "{}", refused(&other));
        let longer = Packed { body: [&packed.body[..], &[0, 0]].concat(), ..packed.clone() };
        assert!(refused(&longer).contains("2 bytes left over"), "{}", refused(&longer));
        let shorter = Packed { body: packed.body[..2].to_vec(), ..packed };
        assert!(refused(&shorter).contains("cannot be unpacked"), "{}", refused(&shorter));
    }
}
