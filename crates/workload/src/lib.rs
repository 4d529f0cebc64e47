//! What runs in guests: the Workload trait, one folder a workload, and the registry.
