//! The static program that runs inside every guest and on every client host.
