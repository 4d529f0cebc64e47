//! A hash of sources, for build scripts: what is built from other definitions has another one.

/// FNV-1a of 64 bits (draft-eastlake-fnv): the same on every machine and with every compiler.
pub struct SourceHash(u64);

impl SourceHash {
    pub const fn new() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }

    /// Adds the lines of a source that define something: no comments, no tests.
    pub fn add_definitions(&mut self, text: &str) {
        let lines = text.lines().take_while(|line| *line != "#[cfg(test)]").map(str::trim);
        lines.filter(|line| !line.is_empty() && !line.starts_with("//")).for_each(|line| self.add(line));
    }

    /// Adds a line.
    pub fn add(&mut self, line: &str) {
        for &byte in line.as_bytes().iter().chain(b"\n") {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    /// Gives it to the crate that is built, as an environment variable.
    pub fn tell(&self, name: &str) {
        println!("cargo::rustc-env={name}={:016x}", self.0);
    }
}
