//! Figures that somebody else published, as run folders.
