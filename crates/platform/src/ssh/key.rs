//! The host key that a study pins.

/// A host key, or what is known of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum HostKey {
    /// The whole public key: its type and its base64.
    Whole(String, String),
    /// Its fingerprint, as `ssh-keygen -l` prints it.
    Fingerprint(String),
}

impl HostKey {
    /// The key as written in a study. Nothing else than letters, digits and a few signs passes: what comes out of here
    /// goes into ssh's configuration, where blanks, quotes and `%` have a meaning.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let base64 = |word: &str| word.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/' | b'='));
        if let Some(hash) = text.trim().strip_prefix("SHA256:") {
            // 32 bytes in base64 without padding.
            return if hash.len() == 43 && base64(hash) {
                Ok(Self::Fingerprint(format!("SHA256:{hash}")))
            } else {
                Err(format!("{text:?} is no fingerprint: 43 letters follow `SHA256:`"))
            };
        }
        let mut words = text.split_whitespace();
        let (Some(kind), Some(key)) = (words.next(), words.next()) else {
            return Err(format!("{text:?} is neither a public key nor a fingerprint"));
        };
        let known = kind.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.' | b'@'));
        // Every public key begins with the length of its type's name, whose first bytes are zero.
        if known && key.len() > 40 && key.starts_with("AAAA") && base64(key) {
            Ok(Self::Whole(kind.to_owned(), key.to_owned()))
        } else {
            Err(format!("{text:?} is no public key: its type and `AAAA...` are expected"))
        }
    }

    /// The command that tells ssh which key it may accept, with ssh's own marks for the host and the key that it was
    /// shown. So no file is needed, here or when a dead run is cleaned up, and no other file is looked at.
    pub(super) fn command(&self) -> String {
        match self {
            Self::Whole(kind, key) => format!("/bin/sh -c \"echo $1 $2 $3\" known %H {kind} {key}"),
            Self::Fingerprint(hash) => {
                format!("/bin/sh -c \"if test $1 = $2; then echo $3 $4 $5; fi\" known {hash} %f %H %t %K")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "AAAAC3NzaC1lZDI1NTE5AAAAIJ2dM0n9FzH0T8oZ6wY8Ww0n9FzH0T8oZ6wY8Ww0n9Fz";

    #[test]
    fn keys_and_fingerprints_are_distinguished_and_nothing_else_passes() {
        let whole = HostKey::parse(&format!("ssh-ed25519 {KEY} root@vm1")).unwrap();
        assert_eq!(whole, HostKey::Whole("ssh-ed25519".into(), KEY.into()));
        let hash = format!("SHA256:{}", "a".repeat(43));
        assert_eq!(HostKey::parse(&hash).unwrap(), HostKey::Fingerprint(hash.clone()));
        let command = |known: &str, key: &str| format!("{known} {key}");
        for wrong in [
            "",
            "ssh-ed25519",
            "SHA256:short",
            "MD5:aa:bb",
            &command("ssh-ed25519;reboot", KEY),
            &command("ssh-ed25519", &format!("{KEY}\"$(reboot)")),
            &format!("SHA256:{}%", "a".repeat(42)),
        ] {
            assert!(HostKey::parse(wrong).is_err(), "{wrong:?}");
        }
    }
}
