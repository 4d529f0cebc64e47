//! Statistics of comparison: run folder to Findings, as pure functions.
