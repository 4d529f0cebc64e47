//! The form of a run's id.

/// Whether this is an id as runs have them: `YYYYMMDD-HHMMSS-xxxx`, time in UTC and four lower-case hexadecimal digits. Nothing else
/// may become part of a path or of the name of a thing on the host.
pub fn is_run_id(id: &str) -> bool {
    const FORM: &[u8] = b"dddddddd-dddddd-xxxx";
    let fits = |(form, byte): (&u8, u8)| match form {
        b'd' => byte.is_ascii_digit(),
        b'x' => matches!(byte, b'0'..=b'9' | b'a'..=b'f'),
        other => byte == *other,
    };
    id.len() == FORM.len() && FORM.iter().zip(id.bytes()).all(fits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_generated_form_is_an_id() {
        assert!(is_run_id("20261123-014500-00af"));
        for other in [
            "",
            "id",
            "20261123-014500-00AF",
            "20261123-014500-00af0",
            "2026112x-014500-00af",
            "../../../../../../etc/x",
            "20261123/014500/00af",
        ] {
            assert!(!is_run_id(other), "{other}");
        }
    }
}
