//! What is sampled on a host and in a guest, on one timeline.
