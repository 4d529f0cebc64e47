//! What tare prints: the one way to standard output and standard error.
//!
//! Much of what is printed was written by others: labels of a run folder, lines of a study, what a guest or a program said.
//! So every text loses the secrets of the study that it is about, and all that could command a terminal. Of escape sequences only the
//! colours that tare itself uses are left, and those only where colours are wanted.

use std::io::{ErrorKind, IsTerminal, Write};
use std::process::ExitCode;
use std::sync::{PoisonError, RwLock};

use tare_model::redact::Redactor;
use tare_model::text::{is_unfit, readable};
use tare_study::StudyError;

use crate::exit::{Exit, Failure};

/// What is taken out of everything that is printed.
static KEPT_OUT: RwLock<Option<Redactor>> = RwLock::new(None);

/// The parameters of the colours and weights that tare's own texts have (ECMA-48, 8.3.117). None of them hides a text.
const OWN: [&str; 13] = ["0", "1", "2", "3", "4", "22", "31", "32", "33", "34", "35", "36", "39"];

/// From now on nothing is printed that the redactor knows.
pub fn keep_out(redactor: Redactor) {
    *KEPT_OUT.write().unwrap_or_else(PoisonError::into_inner) = Some(redactor);
}

/// Prints to standard output. A reader that has had enough (`| head`) is no error.
///
/// # Errors
/// When standard output cannot be written for any other reason.
pub fn print(text: &str) -> Result<(), Failure> {
    let shown = shown(text, colours(&std::io::stdout()));
    let mut stdout = std::io::stdout().lock();
    let newline = if shown.ends_with('\n') { "" } else { "\n" };
    match stdout.write_all(shown.as_bytes()).and_then(|()| stdout.write_all(newline.as_bytes())) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(Failure::new(format!("standard output cannot be written: {error}"), Exit::Failure))
        }
        _ => Ok(()),
    }
}

/// Prints a line to standard error. Nothing can be said any more when that is closed.
pub fn note(text: &str) {
    let _ = writeln!(std::io::stderr(), "{}", shown(text, colours(&std::io::stderr())).trim_end());
}

/// Tells the user why a command ended, and gives the exit code.
pub fn report(failure: Failure) -> ExitCode {
    note(&failure.message);
    failure.exit.into()
}

/// The failure of a study that is wrong: every problem with its place in the file.
pub fn wrong_study(error: &StudyError) -> Failure {
    Failure { message: error.render(colours(&std::io::stderr())), exit: Exit::Usage }
}

/// Whether a stream is a terminal that wants colours.
pub fn colours(stream: &impl IsTerminal) -> bool {
    stream.is_terminal() && std::env::var_os("NO_COLOR").is_none()
}

/// The text as it may be printed.
pub fn shown(text: &str, colours: bool) -> String {
    let kept_out = KEPT_OUT.read().unwrap_or_else(PoisonError::into_inner);
    let text = kept_out.as_ref().map_or_else(|| text.to_owned(), |redactor| redactor.text(text));
    if !text.contains(is_unfit) {
        return text;
    }
    if !colours {
        return readable(&text);
    }
    let mut parts = text.split('\u{1b}');
    let mut shown = readable(parts.next().unwrap_or_default());
    for part in parts {
        match part.strip_prefix('[').and_then(|rest| rest.split_once('m')).filter(|(codes, _)| is_own(codes)) {
            Some((codes, rest)) => shown.push_str(&format!("\u{1b}[{codes}m{}", readable(rest))),
            None => shown.push_str(&readable(&format!("\u{1b}{part}"))),
        }
    }
    shown
}

fn is_own(codes: &str) -> bool {
    codes.split(';').all(|code| OWN.contains(&code))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_but_tares_own_colours_reaches_a_terminal() {
        let hostile =
            "\u{1b}[1mbold\u{1b}[0m \u{1b}[2J\u{1b}[8mhidden\u{1b}]0;title\u{7}\u{9b}31m\u{202e}x\u{1b}\u{1b}[1;31mred";
        let coloured = shown(hostile, true);
        assert!(
            coloured.starts_with("\u{1b}[1mbold\u{1b}[0m \u{fffd}[2J\u{fffd}[8mhidden\u{fffd}]0;title"),
            "{coloured:?}"
        );
        assert!(coloured.ends_with("x\u{fffd}\u{1b}[1;31mred"), "{coloured:?}");
        assert!(!shown(hostile, false).contains(is_unfit));
        assert_eq!(shown("a\r\nb\rc", false), "a\nb\u{fffd}c");
    }
}
