//! From what the guests of an arm are started, where a start is the operation.

use serde::{Deserialize, Serialize};

/// From what the guests of an arm are started that its workload makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Start {
    /// From nothing: the guest is made.
    #[default]
    Cold,
    /// From a pool of so many guests that were made before, have answered, and were stopped: one of them runs again.
    Pool(u32),
    /// From a snapshot of a guest that had answered: it is restored.
    Snapshot,
}

impl Start {
    /// Whether guests are made from nothing.
    pub const fn is_cold(&self) -> bool {
        matches!(self, Self::Cold)
    }

    /// Guests of the pool; 0 without one.
    pub const fn pool(self) -> u32 {
        match self {
            Self::Pool(guests) => guests,
            Self::Cold | Self::Snapshot => 0,
        }
    }

    /// For people; `None` where guests are made from nothing.
    pub fn words(self) -> Option<String> {
        match self {
            Self::Cold => None,
            Self::Pool(1) => Some("from a pool of one guest that is stopped".to_owned()),
            Self::Pool(guests) => Some(format!("from a pool of {guests} guests that are stopped")),
            Self::Snapshot => Some("restored from a snapshot".to_owned()),
        }
    }
}

/// Guests that a case's workload makes, at most so many at one time, where these are the arms whose guests are alive together: pools stand all the
/// time, and the arms without one make theirs one after the other. `made`: how many there are of an operation.
pub fn made_together(made: u32, starts: impl Iterator<Item = Start>) -> u64 {
    if made == 0 {
        return 0;
    }
    let (mut pools, mut others) = (0, false);
    for start in starts {
        pools += u64::from(start.pool());
        others |= start.pool() == 0;
    }
    pools + if others { u64::from(made) } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_start_is_written_as_in_a_study() {
        for (start, written) in
            [(Start::Cold, r#""cold""#), (Start::Pool(8), r#"{"pool":8}"#), (Start::Snapshot, r#""snapshot""#)]
        {
            assert_eq!(serde_json::to_string(&start).unwrap(), written);
            assert_eq!(serde_json::from_str::<Start>(written).unwrap(), start);
        }
    }

    #[test]
    fn pools_stand_together_and_others_are_made_in_turn() {
        let made = |made, starts: &[Start]| made_together(made, starts.iter().copied());
        assert_eq!(made(8, &[Start::Cold, Start::Cold, Start::Snapshot]), 8);
        assert_eq!(made(8, &[Start::Cold, Start::Pool(8), Start::Pool(16)]), 32);
        assert_eq!(made(8, &[Start::Pool(16)]), 16);
        assert_eq!(made(0, &[Start::Cold]), 0);
    }
}
