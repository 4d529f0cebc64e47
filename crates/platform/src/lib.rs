//! What provides guests: the Platform and Guest traits, one folder a platform, and the registry.
