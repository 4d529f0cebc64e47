//! A site as its file has it: `sites/*.toml`, or one of the user's own.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;
use tare_model::Span;
use tare_model::field::FieldError;

use super::check::check;
use crate::regular;

/// Longest file of tables that is read, bytes.
const FILE_BYTES: u64 = 1 << 20;

/// A site that comes with tare.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Site {
    /// A bank.
    Banking,
    /// A shop.
    Ecommerce,
    /// A vendor's support, with downloads.
    Support,
}

impl Site {
    /// Its name, the first part of the addresses of its pages.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Banking => "banking",
            Self::Ecommerce => "ecommerce",
            Self::Support => "support",
        }
    }

    const fn text(self) -> &'static str {
        match self {
            Self::Banking => include_str!("sites/banking.toml"),
            Self::Ecommerce => include_str!("sites/ecommerce.toml"),
            Self::Support => include_str!("sites/support.toml"),
        }
    }

    /// The site's own tables.
    ///
    /// # Errors
    /// Never, unless the file that was built in is wrong.
    pub fn tables(self) -> Result<Tables, FieldError> {
        read(self.text(), &format!("sites/{}.toml", self.name()))
    }

    /// The tables of a study: those of a file, else the site's own. A file of the user's own may change everything but the
    /// site's name and what its backend understands.
    ///
    /// # Errors
    /// When the file cannot be read, or anything in it is wrong; with file and field.
    pub fn tables_from(self, path: Option<&str>) -> Result<Tables, FieldError> {
        let own = self.tables()?;
        let Some(path) = path else { return Ok(own) };
        let text = regular::read(Path::new(path), FILE_BYTES).map_err(|error| {
            FieldError::new(&["tables"], format!("cannot read {path}: {error}"))
                .help("write the path of a file as those in workloads/web/host/sites")
        })?;
        let tables = read(&text, path)?;
        if tables.name != own.name {
            let why = format!("{path}: name: `{}` is not `{}`, the site of this workload", tables.name, own.name);
            return Err(FieldError::new(&["tables"], why).help("server and backend know sites by their names"));
        }
        let commands: Vec<u16> = own.states.iter().filter_map(|state| state.command).collect();
        let other = tables.states.iter().find(|state| state.command.is_some_and(|known| !commands.contains(&known)));
        if let Some(state) = other {
            let why =
                format!("{path}: states.{}.command: the backend of `{}` has no such command", state.name, own.name);
            return Err(FieldError::new(&["tables"], why).help("docs/reference/web.md has those that there are"));
        }
        Ok(tables)
    }
}

/// Reads and checks tables.
fn read(text: &str, path: &str) -> Result<Tables, FieldError> {
    let tables: Tables = toml::from_str(text).map_err(|error| {
        let line = error.span().map(|span| 1 + text[..span.start.min(text.len())].matches('\n').count());
        let place = line.map_or_else(|| path.to_owned(), |line| format!("{path}, line {line}"));
        FieldError::new(&["tables"], format!("{place}: {}", error.message()))
    })?;
    check(&tables).map_err(|wrong| FieldError::new(&["tables"], format!("{path}: {wrong}")))?;
    Ok(tables)
}

/// A site.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct Tables {
    /// Name.
    pub name: String,
    /// First request of a user: states and their probabilities.
    pub entry: BTreeMap<String, f64>,
    /// Whether pages are asked for over TLS, where they do not say.
    pub secure: bool,
    /// How far the probability that a user has an image already lies from the page's mean, at most.
    pub image_spread: f64,
    /// How long users think.
    pub think: ThinkTimes,
    /// Bounds of the response time of pages.
    pub pages: Bounds,
    /// Least byte rates of downloads.
    pub downloads: Option<Rates>,
    /// Files beside the fixed ones.
    #[serde(default)]
    pub files: Files,
    /// What can be asked for.
    pub states: Vec<State>,
}

/// Think times.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ThinkTimes {
    pub mean: Span,
    pub most: Span,
    pub granularity: Span,
}

/// Bounds of a response time.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Bounds {
    pub good: Span,
    pub tolerable: Span,
}

/// Least byte rates, bytes a second.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Rates {
    pub good: f64,
    pub tolerable: f64,
}

/// Files of which there are more the more sessions there are.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Files {
    pub checks: Option<Checks>,
    pub products: Option<Products>,
    pub downloads: Option<Downloads>,
}

/// Images of checks.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct Checks {
    pub users_per_session: f64,
    pub checks: u32,
    /// Base and step, bytes.
    pub front: (u64, u64),
    /// The same of a back.
    pub back: (u64, u64),
}

/// Images of products.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct Products {
    pub directories_per_session: f64,
    pub items: u32,
    /// Base and step by class, bytes.
    pub classes: Vec<(u64, u64)>,
}

/// Downloads.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct Downloads {
    pub directories_per_session: f64,
    pub zipf: f64,
    pub classes: Vec<Class>,
}

/// A class of downloads.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Class {
    pub share: f64,
    /// Base and step, bytes.
    pub size: (u64, u64),
    pub within: Vec<f64>,
}

/// One thing that can be asked for: a page where it has no `file`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct State {
    pub name: String,
    /// The file that it is.
    pub file: Option<StateFile>,
    /// The request type, where that has another name.
    pub counted_as: Option<String>,
    pub title: Option<String>,
    pub command: Option<u16>,
    #[serde(default)]
    pub parameters: Vec<String>,
    /// Parameters that are numbers below the one given.
    #[serde(default)]
    pub choices: BTreeMap<String, u32>,
    #[serde(default)]
    pub role: Role,
    pub images: Option<Images>,
    /// Classes of the images of the product that the page shows.
    #[serde(default)]
    pub products: Vec<String>,
    /// Padding as published, bytes.
    #[serde(default)]
    pub padding: u64,
    /// Dynamic contents beside it, bytes.
    #[serde(default)]
    pub data: u64,
    pub secure: Option<bool>,
    #[serde(default = "yes")]
    pub thinks: bool,
    /// Share of all requests, %.
    pub target: Option<f64>,
    #[serde(default)]
    pub next: BTreeMap<String, f64>,
}

const fn yes() -> bool {
    true
}

/// A file that is a request by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum StateFile {
    /// The front of the user's check.
    CheckFront,
    /// Its back.
    CheckBack,
    /// A download.
    Download,
}

/// What a page does with the session on the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Role {
    /// Begins one.
    Login,
    /// Ends it.
    Logout,
    /// Takes one.
    Member,
    /// Nothing.
    #[default]
    Open,
}

impl Role {
    /// As `pages.tsv` has it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Login => "login",
            Self::Logout => "logout",
            Self::Member => "member",
            Self::Open => "open",
        }
    }
}

/// Fixed images of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Images {
    /// How many.
    pub files: u32,
    /// Bytes of all together.
    pub full: u64,
    /// Of which come, once what users have already is counted.
    pub expected: u64,
}
