//! The command line: arguments, progress, exit codes; nothing else.

mod args;
mod available;
mod catalog;
mod choice;
mod commands;
mod exit;
mod forms;
mod glance;
mod live;
mod output;
mod place;
mod power;
mod progress;
mod reads;
mod said;
mod studies;

use clap::Parser;
use tracing_subscriber::EnvFilter;

use crate::args::{Arguments, Command};
use crate::exit::{Exit, Failure};

fn main() -> std::process::ExitCode {
    // Before anything is opened or started: nothing of whoever started this reaches a guest.
    tare_wire::descriptors::keep_to_ourselves();
    let arguments = parsed();
    if let Err(failure) = log() {
        let is_gate = matches!(arguments.command, Command::Gate(_));
        return output::report(if is_gate { failure.without_answer() } else { failure });
    }
    if rustix::process::geteuid().is_root()
        && let Some(named) = reads::named(&arguments.command)
    {
        confine(&named);
    }
    if needs_lab(&arguments.command) {
        lift_limit_on_processes();
        // May begin this program anew, in a control group of its own.
        tare_lab::settle_in_own_group(std::env::args_os().skip(1));
    }
    let mut confined = None;
    // Before any thread is started: only a process of one thread may enter a user namespace.
    if needs_lab(&arguments.command) && !rustix::process::geteuid().is_root() {
        // From inside, the processes of dead runs could not be identified any more. The run itself reports
        // what cannot be reaped now: it looks again.
        let _ = tare_controller::reap_dead(&place::agent());
        confined = tare_lab::enter_user_namespace().err().map(|error| error.to_string());
    }
    match commands::run(arguments.command, confined) {
        Ok(exit) => exit.into(),
        Err(failure) => output::report(failure),
    }
}

/// The command line. One that is wrong ends here, with help; of a gate with a code of its own, as 2 is one of its answers.
fn parsed() -> Arguments {
    Arguments::try_parse().unwrap_or_else(|error| {
        let is_gate = std::env::args_os().nth(1).is_some_and(|command| command == "gate");
        if is_gate && error.use_stderr() {
            let _ = error.print();
            std::process::exit(Exit::NoAnswer as i32);
        }
        error.exit()
    })
}

/// Reads strangers' folders without root's rights; where that is not possible, says why and goes on.
fn confine(named: &[tare_lab::NamedPath]) {
    if let Err(error) = tare_lab::confine_reader(named) {
        let paths: Vec<String> = named.iter().map(|named| named.path().display().to_string()).collect();
        output::note(&format!("tare: reading {} with all rights of this user: {error}", paths.join(", ")));
    }
}

/// Guests are limited by their control groups. A limit on the processes of one user would count those of all guests that share
/// the host's kernel together, and none of a machine's.
fn lift_limit_on_processes() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    if setrlimit(Resource::Nproc, Rlimit { current: None, maximum: None }).is_err() {
        let hard = getrlimit(Resource::Nproc).maximum;
        // Who may not raise it keeps it.
        let _ = setrlimit(Resource::Nproc, Rlimit { current: hard, maximum: hard });
    }
}

/// Logs to standard error what TARE_LOG asks for.
fn log() -> Result<(), Failure> {
    let filter = match std::env::var("TARE_LOG") {
        Ok(wanted) => EnvFilter::try_new(&wanted).map_err(|error| {
            Failure::new(
                format!("TARE_LOG is `{wanted}`, which is no filter: {error}; write `debug`, say"),
                Exit::Usage,
            )
        })?,
        // Where many links come and go at once events are lost, which the lab reckons with: it asks again.
        Err(_) => EnvFilter::new("warn,netlink_proto=error"),
    };
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).init();
    Ok(())
}

/// Whether a command makes namespaces.
const fn needs_lab(command: &Command) -> bool {
    matches!(command, Command::Run(_) | Command::Exec(_) | Command::Calibrate(_) | Command::Doctor(_))
}
