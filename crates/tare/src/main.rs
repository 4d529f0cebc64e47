//! The command line: arguments, progress, exit codes; nothing else.

mod args;
mod catalog;
mod commands;
mod exit;
mod output;
mod place;
mod progress;
mod studies;

use clap::Parser;

use crate::args::{Arguments, Command};
use crate::exit::Exit;

fn main() -> std::process::ExitCode {
    let arguments = Arguments::parse();
    tracing_subscriber::fmt()
        .with_env_filter(
            tracing_subscriber::EnvFilter::try_from_env("TARE_LOG")
                .unwrap_or_else(|_| tracing_subscriber::EnvFilter::new("warn")),
        )
        .with_writer(std::io::stderr)
        .init();
    // Before any thread is started: only a process of one thread may enter a user namespace.
    if needs_lab(&arguments.command)
        && !rustix::process::geteuid().is_root()
        && let Err(error) = tare_lab::enter_user_namespace()
    {
        return exit::report(&error, Exit::HostUnfit);
    }
    match commands::run(arguments.command) {
        Ok(exit) => exit.into(),
        Err(failure) => failure.report(),
    }
}

/// Whether a command makes namespaces.
const fn needs_lab(command: &Command) -> bool {
    matches!(command, Command::Run(_) | Command::Calibrate(_) | Command::Doctor(_))
}
