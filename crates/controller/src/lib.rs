//! Runs a Plan: phases, journal, teardown, resume, reap.
