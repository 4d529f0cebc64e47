//! `tare ksm`.

mod holders;
mod look;
mod restore;
mod status;
mod tune;
mod watch;

use tare_memory::{Kernel, MemoryError};
use tare_model::Refusal;

use crate::args::{KsmArguments, KsmCommand};
use crate::exit::{Exit, Failure};

/// The warning for everybody who merges memory.
pub const SIDE_CHANNELS: &str = "whoever shares merged memory can learn by timing what others hold in theirs, and has been shown \
                                 to change it (deduplication side channels, Flip Feng Shui, CAIN): merge only within one trust \
                                 domain";

/// Does what was asked about merging.
pub fn command(arguments: &KsmArguments) -> Result<Exit, Failure> {
    match &arguments.command {
        KsmCommand::Status { shown } => status::command(shown.format),
        KsmCommand::Watch { every, format, lasts } => watch::command(*every, *format, *lasts),
        KsmCommand::Tune(arguments) => tune::command(arguments),
        KsmCommand::Restore => restore::command(),
    }
}

/// Why merging could not be read. Where the host cannot merge memory, that is the reason given.
fn unseen(kernel: &Kernel, error: &MemoryError) -> Failure {
    match kernel.refusal() {
        Some(refusal) => refused(&refusal),
        None => Failure::new(error, Exit::Failure),
    }
}

/// Why this host cannot do it, and what would help.
fn refused(Refusal { reason, remedy }: &Refusal) -> Failure {
    Failure::new(format!("memory cannot be merged here: {reason}\n  remedy: {remedy}"), Exit::HostUnfit)
}

/// Bytes as people read them.
fn mib(bytes: i128) -> String {
    let (whole, tenths) = (bytes / (1 << 20), (bytes.abs() % (1 << 20)) * 10 / (1 << 20));
    let sign = if bytes < 0 && whole == 0 && tenths > 0 { "-" } else { "" };
    format!("{sign}{whole}.{tenths} MiB")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_keep_their_sign() {
        assert_eq!(mib(0), "0.0 MiB");
        assert_eq!(mib((5 << 20) + (1 << 19)), "5.5 MiB");
        assert_eq!((mib(-(1 << 19)), mib(-5)), ("-0.5 MiB".to_owned(), "0.0 MiB".to_owned()));
        assert_eq!(mib(-(3 << 20)), "-3.0 MiB");
    }
}
