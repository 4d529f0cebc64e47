//! What libvirt refused, in its own words.

use std::time::Duration;

/// `VIR_ERR_NO_SUPPORT`: the driver does not have this function.
const NO_SUPPORT: i32 = 3;
/// `VIR_ERR_INVALID_ARG`, `VIR_ERR_ARGUMENT_UNSUPPORTED`: how drivers refuse a flag that they do not know.
const FLAG_REFUSED: [i32; 2] = [8, 74];
/// `VIR_ERR_NO_DOMAIN`.
const NO_DOMAIN: i32 = 42;
/// `VIR_ERR_AUTH_FAILED`, `VIR_ERR_AUTH_CANCELLED`, `VIR_ERR_AUTH_UNAVAILABLE`.
const AUTHENTICATION: [i32; 3] = [45, 79, 91];
/// `VIR_ERR_OPERATION_INVALID`: not in this state.
const WRONG_STATE: i32 = 55;

/// An error of libvirt.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum LibvirtError {
    /// There is no libvirt here, or one that is too old.
    #[error("libvirt's library could not be loaded: {why}")]
    Library {
        /// What the loader said.
        why: String,
    },
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
    #[error("could not {tried}: that cannot be told to libvirt")]
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
        self.code() == Some(NO_SUPPORT)
    }

    /// Whether a flag was refused, so that fewer may do.
    pub(super) fn is_flag_refused(&self) -> bool {
        self.code().is_some_and(|code| FLAG_REFUSED.contains(&code))
    }

    /// Whether there is no such domain.
    pub(super) fn is_no_domain(&self) -> bool {
        self.code() == Some(NO_DOMAIN)
    }

    /// Whether the domain is in another state than it would have to be.
    pub(super) fn is_wrong_state(&self) -> bool {
        self.code() == Some(WRONG_STATE)
    }

    /// Whether it was about who asks.
    pub(super) fn is_authentication(&self) -> bool {
        self.code().is_some_and(|code| AUTHENTICATION.contains(&code))
    }
}
