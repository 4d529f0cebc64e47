//! An estimate of location with its interval.

/// Error probability of every interval.
pub(crate) const ALPHA: f64 = 0.05;
/// Blocks from which an exact distribution-free interval of 95 % exists: 2/2^6 = 3.1 %.
pub(crate) const RANK_BLOCKS_MIN: usize = 6;
/// An estimate of location or shift with its interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Located {
    /// The estimate.
    pub value: f64,
    /// Ends of the interval; `None` where no interval of the level exists.
    pub ends: Option<(f64, f64)>,
    /// Attained level of the interval, or the level asked for when there is none.
    pub level: f64,
}

impl Located {
    /// From end to end of the interval; `None` where there is none, or its ends are the same.
    pub(crate) fn breadth(&self) -> Option<f64> {
        self.ends.map(|(low, high)| high - low).filter(|breadth| *breadth > 0.0)
    }
}
