//! An estimate of location with its interval.

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
