//! What libvirt refused, in its own words.

use std::time::Duration;

/// What libvirt calls its errors (`virErrorNumber`).
mod code {
    /// `VIR_ERR_NO_SUPPORT`: the driver does not have this function.
    pub(super) const NO_SUPPORT: i32 = 3;
    /// `VIR_ERR_INVALID_ARG`: how some drivers refuse a flag that they do not know.
    pub(super) const INVALID_ARG: i32 = 8;
    /// `VIR_ERR_NO_DOMAIN`: there is no such domain.
    pub(super) const NO_DOMAIN: i32 = 42;
    /// `VIR_ERR_AUTH_FAILED`: whoever asks is not who may.
    pub(super) const AUTH_FAILED: i32 = 45;
    /// `VIR_ERR_OPERATION_INVALID`: not in this state.
    pub(super) const OPERATION_INVALID: i32 = 55;
    /// `VIR_ERR_ARGUMENT_UNSUPPORTED`: how other drivers refuse a flag.
    pub(super) const ARGUMENT_UNSUPPORTED: i32 = 74;
    /// `VIR_ERR_AUTH_CANCELLED`: whoever was asked for a password gave none.
    pub(super) const AUTH_CANCELLED: i32 = 79;
    /// `VIR_ERR_AUTH_UNAVAILABLE`: nothing is there that could ask for a password, such as an agent of polkit's.
    pub(super) const AUTH_UNAVAILABLE: i32 = 94;
}

/// How drivers refuse a flag that they do not know.
const FLAG_REFUSED: [i32; 2] = [code::INVALID_ARG, code::ARGUMENT_UNSUPPORTED];
/// What is about who asks.
const AUTHENTICATION: [i32; 3] = [code::AUTH_FAILED, code::AUTH_CANCELLED, code::AUTH_UNAVAILABLE];

/// An error of libvirt.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum LibvirtError {
    /// There is no libvirt here, or one that is too old.
    #[error("libvirt's library could not be loaded: {why}")]
    Library {
        /// What the loader said.
        why: String,
    },
    /// This program is linked statically, and libvirt's interface is a shared library alone.
    #[error("this build of tare is one static program, which cannot load libvirt's library")]
    Static,
    /// libvirt said no.
    #[error("libvirt could not {tried}: {message}")]
    Refused {
        /// What was tried.
        tried: String,
        /// `virErrorNumber`.
        code: i32,
        /// libvirt's own message.
        message: String,
    },
    /// libvirt did not answer.
    #[error("libvirt was asked to {tried} and did not answer within {waited:?}")]
    Slow {
        /// What was tried.
        tried: String,
        /// How long.
        waited: Duration,
    },
    /// A name that libvirt cannot take.
    #[error("could not {tried}: libvirt cannot take that value")]
    Text {
        /// What was tried.
        tried: String,
    },
    /// XML of libvirt's that could not be read, or ours that could not be written.
    #[error("the description of {what} could not be understood: {why}")]
    Description {
        /// Of what.
        what: String,
        /// Why.
        why: String,
    },
}

impl LibvirtError {
    fn code(&self) -> Option<i32> {
        match self {
            Self::Refused { code, .. } => Some(*code),
            _ => None,
        }
    }

    /// Whether the driver does not have the function at all.
    pub(super) fn is_unsupported(&self) -> bool {
        self.code() == Some(code::NO_SUPPORT)
    }

    /// Whether a flag was refused, so that fewer may do.
    pub(super) fn is_flag_refused(&self) -> bool {
        self.code().is_some_and(|code| FLAG_REFUSED.contains(&code))
    }

    /// Whether there is no such domain.
    pub(super) fn is_no_domain(&self) -> bool {
        self.code() == Some(code::NO_DOMAIN)
    }

    /// Whether the domain is in another state than it would have to be.
    pub(super) fn is_wrong_state(&self) -> bool {
        self.code() == Some(code::OPERATION_INVALID)
    }

    /// Whether it was about who asks.
    pub(super) fn is_authentication(&self) -> bool {
        self.code().is_some_and(|code| AUTHENTICATION.contains(&code))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    const HEADER: &str = "/usr/include/libvirt/virterror.h";

    /// The numbers of `virErrorNumber`, by name. libvirt gives each of them its number in the header.
    fn numbers(header: &str) -> HashMap<&str, i32> {
        let lines = header.lines().filter_map(|line| line.trim().strip_prefix("VIR_ERR_"));
        lines
            .filter_map(|line| {
                let (name, rest) = line.split_once('=')?;
                let digits = rest.trim_start().split(|c: char| !c.is_ascii_digit()).next()?;
                Some((name.trim(), digits.parse().ok()?))
            })
            .collect()
    }

    #[test]
    fn numbers_are_those_of_libvirts_header() {
        let header = match std::fs::read_to_string(HEADER) {
            Ok(header) => header,
            Err(error) => return println!("SKIPPED: {HEADER}: {error}; Debian has it in libvirt-dev"),
        };
        let theirs = numbers(&header);
        let ours = [
            ("NO_SUPPORT", code::NO_SUPPORT),
            ("INVALID_ARG", code::INVALID_ARG),
            ("NO_DOMAIN", code::NO_DOMAIN),
            ("AUTH_FAILED", code::AUTH_FAILED),
            ("OPERATION_INVALID", code::OPERATION_INVALID),
            ("ARGUMENT_UNSUPPORTED", code::ARGUMENT_UNSUPPORTED),
            ("AUTH_CANCELLED", code::AUTH_CANCELLED),
            ("AUTH_UNAVAILABLE", code::AUTH_UNAVAILABLE),
        ];
        for (name, number) in ours {
            assert_eq!(theirs.get(name), Some(&number), "VIR_ERR_{name}");
        }
    }

    #[test]
    fn an_agent_of_polkits_that_is_not_there_is_about_who_asks() {
        let refused = |code| LibvirtError::Refused { tried: "connect".into(), code, message: String::new() };
        // 91 is VIR_ERR_NO_SERVER.
        let asked = [45, 79, 94, 91, 38].map(|code| refused(code).is_authentication());
        assert_eq!(asked, [true, true, true, false, false]);
    }
}
