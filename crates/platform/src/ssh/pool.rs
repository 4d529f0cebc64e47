//! Several machines of one kind: which of them are in use.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

/// What stands in options for the number of a machine.
pub(super) const PLACEHOLDER: &str = "{guest}";

/// The machines of an arm, numbered from 1.
#[derive(Debug)]
pub(super) struct Pool {
    machines: u32,
    taken: Mutex<BTreeSet<u32>>,
}

/// A machine that is in use. Dropped, it is free again.
#[derive(Debug)]
pub(super) struct Claim {
    pool: Arc<Pool>,
    /// Its number.
    pub number: u32,
}

impl Pool {
    pub(super) fn new(machines: u32) -> Arc<Self> {
        Arc::new(Self { machines, taken: Mutex::default() })
    }

    /// The first that is free. Where there is one machine, it always is: several drivers may be on one host, and that a machine is one
    /// guest at a time is the study's to see to.
    ///
    /// # Errors
    /// When none is.
    pub(super) fn take(self: &Arc<Self>) -> Result<Claim, String> {
        if self.machines == 1 {
            return Ok(Claim { pool: Arc::clone(self), number: 1 });
        }
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let free = (1..=self.machines).find(|number| !taken.contains(number));
        let number = free.ok_or_else(|| format!("its {} machines are guests already", self.machines))?;
        taken.insert(number);
        Ok(Claim { pool: Arc::clone(self), number })
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.pool.taken.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.number);
    }
}

/// A text with a machine's number in the place of the placeholder.
pub(super) fn numbered(text: &str, number: u32) -> String {
    text.replace(PLACEHOLDER, &number.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_is_one_guest_at_a_time_and_free_again_afterwards() {
        let pool = Pool::new(2);
        let (one, two) = (pool.take().unwrap(), pool.take().unwrap());
        assert_eq!((one.number, two.number), (1, 2));
        assert_eq!(pool.take().unwrap_err(), "its 2 machines are guests already");
        drop(one);
        assert_eq!(pool.take().unwrap().number, 1);
        let one = Pool::new(1);
        assert_eq!((one.take().unwrap().number, one.take().unwrap().number), (1, 1));
        assert_eq!(numbered("vm{guest}.rack{guest}", 12), "vm12.rack12");
    }
}
