//! Why a study file was refused, for people: the line, the field underlined, the reason, the remedy.

use std::fmt;
use std::ops::Range;
use std::path::PathBuf;

use tare_model::redact::masked_source;
use tare_model::text::readable_in_place;

use miette::{Diagnostic, GraphicalReportHandler, GraphicalTheme, LabeledSpan, NamedSource, SourceCode};

/// Most problems that are printed; a file with more has one cause for many of them.
const SHOWN: usize = 20;

/// One thing that is wrong in a study file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Keys from the root of the file to the field. Empty: the whole file, or its syntax.
    pub path: Vec<String>,
    /// What is wrong, and why.
    pub message: String,
    /// What was meant, or what to write instead.
    pub help: Option<String>,
    /// Bytes of the file that are underlined.
    pub span: Range<usize>,
    /// Line of the first of them, from 1.
    pub line: usize,
    /// Column of the first of them, in characters from 1.
    pub column: usize,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Problem {}

/// A problem in the text of its file.
#[derive(Debug)]
struct Placed<'a> {
    problem: &'a Problem,
    source: &'a NamedSource<String>,
    /// Where that text begins in what was checked, bytes.
    begins: usize,
}

impl fmt::Display for Placed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.problem.fmt(f)
    }
}

impl std::error::Error for Placed<'_> {}

impl Diagnostic for Placed<'_> {
    fn source_code(&self) -> Option<&dyn SourceCode> {
        Some(self.source)
    }

    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        self.problem.help.as_ref().map(|help| Box::new(help) as Box<dyn fmt::Display>)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        let label = LabeledSpan::new(None, self.problem.span.start - self.begins, self.problem.span.len());
        Some(Box::new(std::iter::once(label)))
    }
}

/// Everything that is wrong in one study file, with its text.
#[derive(Debug)]
pub struct Invalid {
    name: String,
    source: NamedSource<String>,
    /// What was put behind the study, and where it begins.
    hosts: Option<(usize, NamedSource<String>)>,
    problems: Vec<Problem>,
}

impl Invalid {
    /// Of a text by its name, and of one that was put behind it, by where it begins and its name.
    pub(crate) fn new(
        (name, text): (&str, &str),
        hosts: Option<(usize, &str, &str)>,
        mut problems: Vec<Problem>,
    ) -> Self {
        problems.sort_by_key(|problem| (problem.span.start, problem.span.end));
        problems.dedup();
        let source = |name: &str, text: &str| {
            NamedSource::new(name, readable_in_place(&masked_source(text))).with_language("TOML")
        };
        let hosts = hosts.map(|(begins, own, hosts)| (begins, source(own, hosts)));
        Self { name: name.to_owned(), source: source(name, text), hosts, problems }
    }

    /// A problem in the text that it is in.
    fn place<'a>(&'a self, problem: &'a Problem) -> Placed<'a> {
        match &self.hosts {
            Some((begins, source)) if problem.span.start >= *begins => Placed { problem, source, begins: *begins },
            _ => Placed { problem, source: &self.source, begins: 0 },
        }
    }

    /// The problems in the order of the file. Never empty.
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }
}

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.problems.len() {
            1 => write!(f, "`{}` is not a valid study: 1 error", self.name),
            n if n > SHOWN => write!(f, "`{}` is not a valid study: {n} errors, the first {SHOWN} of them", self.name),
            n => write!(f, "`{}` is not a valid study: {n} errors", self.name),
        }
    }
}

impl std::error::Error for Invalid {}

impl Diagnostic for Invalid {}

/// Why a study file could not become a study.
#[derive(Debug, thiserror::Error, Diagnostic)]
pub enum StudyError {
    /// There is no such file.
    #[error("there is no study file `{}`", path.display())]
    #[diagnostic(help(
        "`tare list` names the studies that ship with tare; `tare init` writes a commented one to start from"
    ))]
    Missing {
        /// The file asked for.
        path: PathBuf,
    },
    /// The file could not be read.
    #[error("cannot read the study file `{}`: {source}", path.display())]
    #[diagnostic(help("a study is a text file in TOML that you may read; check the path and its permissions"))]
    Read {
        /// The file asked for.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
    /// The file is larger than any study.
    #[error("`{name}` is larger than 1 MiB, which no study file is")]
    #[diagnostic(help("is this the right file? A study is a few dozen lines of TOML"))]
    TooLarge {
        /// The file.
        name: String,
    },
    /// The file is not text.
    #[error("`{name}` is not a text file in UTF-8: byte {offset} (line {line}) cannot be read")]
    #[diagnostic(help("save the file as UTF-8, or check that it is the right file"))]
    NotUtf8 {
        /// The file.
        name: String,
        /// Bytes before the first that is wrong.
        offset: usize,
        /// Line of that byte, from 1.
        line: usize,
    },
    /// The file says nothing.
    #[error("`{name}` is empty")]
    #[diagnostic(help("`tare init` writes a commented study file to start from"))]
    Empty {
        /// The file.
        name: String,
    },
    /// The file says something that is wrong.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Invalid(Box<Invalid>),
}

impl StudyError {
    /// The problems inside the file; none when it could not be read at all.
    pub fn problems(&self) -> &[Problem] {
        match self {
            Self::Invalid(invalid) => invalid.problems(),
            _ => &[],
        }
    }

    /// The whole error as it is printed to a terminal 100 columns wide: each problem with its line, the
    /// field underlined, the reason and the remedy. `colour` only adds colour, never meaning.
    pub fn render(&self, colour: bool) -> String {
        let theme = if colour { GraphicalTheme::unicode() } else { GraphicalTheme::unicode_nocolor() };
        let handler = GraphicalReportHandler::new_themed(theme).with_links(false).with_width(100);
        let mut text = String::new();
        let mut add = |diagnostic: &dyn Diagnostic| {
            text.push_str(if text.is_empty() { "" } else { "\n" });
            // Writing into a String fails only if the handler itself does; the plain message is then all there is.
            if handler.render_report(&mut text, diagnostic).is_err() {
                text.push_str(&diagnostic.to_string());
            }
        };
        add(self);
        if let Self::Invalid(invalid) = self {
            // Each by itself: the handler would put a heading of its own above each that is related to another.
            for problem in invalid.problems.iter().take(SHOWN) {
                add(&invalid.place(problem));
            }
        }
        text
    }
}

/// Line and column, from 1, of a byte of a text; the column counts characters.
pub(crate) fn line_and_column(text: &str, offset: usize) -> (usize, usize) {
    let mut end = offset.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let before = &text[..end];
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    (before.matches('\n').count() + 1, before[line_start..].chars().count() + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_and_columns_count_from_one_in_characters() {
        let text = "ab\nµs = 1\n";
        assert_eq!(line_and_column(text, 0), (1, 1));
        assert_eq!(line_and_column(text, 3), (2, 1));
        assert_eq!(line_and_column(text, 6), (2, 3), "µ is two bytes and one column");
        assert_eq!(line_and_column(text, 999), (3, 1));
    }
}
