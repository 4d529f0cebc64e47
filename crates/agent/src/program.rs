//! `tare-agent`: the program that runs inside every guest.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use crate::{age, channel, confine, enter, exit, init, session, sys};
use tare_model::guest::Seccomp;
use tare_wire::confine::Confinement;
use tare_wire::launch::{Launch, WAITING};

const USAGE: &str = "\
tare-agent is started by tare inside a guest; it is not meant to be run by hand.

  tare-agent                  serve requests on standard input and output
  tare-agent --confine LEVEL  the same, after giving up what a guest has no use for; with a filter of system
                              calls at LEVEL `default`, without one at `off`; JSON behind it are rules of Landlock
  tare-agent --channel PATH   serve requests on a character device or socket file
  tare-agent wait ARGUMENTS   say so on standard output, wait for one byte on standard input, then begin anew
                              with the arguments
  tare-agent enter JSON       enter namespaces, control groups and a root file system, then serve
                              requests on standard input and output, or run a program
  tare-agent --version        print the version";

/// Serves, enters a guest, or is the first process of one, by its arguments; gives the exit code.
pub fn main() -> ExitCode {
    sys::large_memory_is_the_kernels();
    end_when_a_thread_panics();
    // Before anything is opened, entered or started: nothing of whoever started this reaches a guest.
    tare_wire::descriptors::keep_to_ourselves();
    let arguments: Vec<String> = std::env::args_os().skip(1).map(|a| a.to_string_lossy().into_owned()).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments.as_slice() {
        // The kernel hands on words that it does not know.
        _ if init::is_wanted() => init::run(),
        [] => serve_on_stdio(),
        ["--confine", level] => confine_and_serve(level, None),
        ["--confine", level, rules] => confine_and_serve(level, Some(rules)),
        ["--channel", path] => serve_on_device(Path::new(path)),
        ["wait", rest @ ..] => wait_and_begin(rest),
        ["enter", json] => enter_and_serve(json),
        ["--version"] => {
            // A closed standard output is no reason to fail loudly.
            let _ = writeln!(std::io::stdout(), "tare-agent {}", env!("CARGO_PKG_VERSION"));
            ExitCode::SUCCESS
        }
        _ => complain(USAGE, exit::USAGE),
    }
}

/// A thread that panics takes the whole agent with it, so that its trial ends with a reason: without it the controller would wait for
/// an answer that nobody gives.
fn end_when_a_thread_panics() {
    let report = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        report(panic);
        std::process::abort();
    }));
}

fn complain(message: &str, code: u8) -> ExitCode {
    // Standard error is the only place to complain to; if it is closed, the code has to do.
    let _ = writeln!(std::io::stderr(), "tare-agent: {message}");
    ExitCode::from(code)
}

fn serve_on_stdio() -> ExitCode {
    match take_stdio() {
        Ok((reader, writer)) => finish(session::run(reader, writer)),
        Err(error) => complain(&format!("cannot take over standard input and output: {error}"), exit::BAD_CHANNEL),
    }
}

fn confine_and_serve(level: &str, rules: Option<&str>) -> ExitCode {
    let (Some(seccomp), Ok(landlock)) = (Seccomp::named(level), rules.map(serde_json::from_str).transpose()) else {
        return complain(USAGE, exit::USAGE);
    };
    match confine::confine(&Confinement { seccomp, landlock }) {
        Ok(()) => serve_on_stdio(),
        Err(error) => complain(&error.to_string(), exit::NOT_ENTERED),
    }
}

/// Begins anew once somebody says so. An end of standard input instead is an orderly end.
fn wait_and_begin(arguments: &[&str]) -> ExitCode {
    let mut byte = [0];
    let said = std::io::stdout().write_all(WAITING).and_then(|()| std::io::stdout().flush());
    // Not a byte more than that one is taken: what follows is for the agent.
    let heard = said.and_then(|()| Ok(rustix::io::read(rustix::stdio::stdin(), &mut byte)?));
    let error = match heard {
        Ok(0) => return ExitCode::SUCCESS,
        Ok(_) => enter::begin_with(arguments),
        Err(error) => error,
    };
    complain(&format!("cannot begin after a wait: {error}"), exit::BAD_CHANNEL)
}

fn serve_on_device(path: &Path) -> ExitCode {
    // Only machines have a device that is a channel.
    age::serves_in_machine();
    match channel::open(path) {
        Ok((reader, writer)) => finish(session::run(reader, writer)),
        Err(error) => complain(&format!("cannot open the channel {}: {error}", path.display()), exit::BAD_CHANNEL),
    }
}

fn finish(ended: session::Ended) -> ExitCode {
    if let session::Ended::Broken(error) = &ended {
        complain(&error.to_string(), exit::BAD_CHANNEL);
    }
    exit::now(ended.exit_code())
}

fn enter_and_serve(json: &str) -> ExitCode {
    let launch: Launch = match serde_json::from_str(json) {
        Ok(launch) => launch,
        Err(error) => return complain(&format!("enter: not a launch description: {error}"), exit::USAGE),
    };
    match enter::enter(&launch) {
        Ok(enter::Entered::Inside) => serve_on_stdio(),
        Ok(enter::Entered::Outside { code }) => ExitCode::from(code),
        Err(error) => complain(&error.to_string(), exit::NOT_ENTERED),
    }
}

/// Takes the channel away from standard input and output, so that nothing else in this process or
/// its children can print into it or read from it.
fn take_stdio() -> std::io::Result<(File, File)> {
    let reader = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3)?;
    let writer = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdout(), 3)?;
    // Without /dev/null in the guest, standard input stays: nothing reads it.
    if let Ok(null) = File::open("/dev/null") {
        rustix::stdio::dup2_stdin(&null)?;
    }
    rustix::stdio::dup2_stdout(rustix::stdio::stderr())?;
    Ok((File::from(reader), File::from(writer)))
}
