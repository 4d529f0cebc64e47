//! Mock and failing platforms and workloads for tests.
