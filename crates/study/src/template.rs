//! The study that `tare init` writes.

/// A commented study file to start from. It is a valid study as it stands.
pub const fn template() -> &'static str {
    include_str!("template.toml")
}
