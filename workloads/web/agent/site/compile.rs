//! A site as users walk through it: checked once, then nothing of it is searched or put into words again.

use std::collections::BTreeSet;

use crate::web::spec::{
    Body, CheckFiles, DownloadFiles, Embedded, FileRef, Parameter, ProductFiles, Quality, SiteModel, SiteState, Think,
    WebDrive,
};
use tare_model::marker::file_id;

use crate::DriverError;
use crate::session::draw::{Aliases, threshold};

/// How far probabilities may be off 1 in all: tables are written with few digits.
const SLACK: f64 = 1e-6;
/// In [`State::next`]: the session ends.
pub(super) const END: u16 = u16::MAX;
/// Directories have 5 digits in addresses.
const MOST_DIRECTORIES: u32 = 100_000;
/// A user number where no file set bounds them.
const USERS: u32 = u32::MAX;

/// A [`WebDrive`] ready to be walked through. The same for all threads.
#[derive(Debug)]
pub(crate) struct Site {
    pub(super) states: Vec<State>,
    pub(super) types: Vec<Type>,
    pub(super) entry: Choice,
    pub(super) think: Think,
    pub(super) pages: Quality,
    /// Bytes a second: good, tolerable.
    pub(super) downloads: (f64, f64),
    pub(super) files: Files,
    pub(super) salt: u64,
    /// Whether bodies are checked.
    pub(super) check: bool,
    /// What ends the first line of a request, and the line of the host.
    pub(super) host: Vec<u8>,
}

/// A request type.
#[derive(Debug)]
pub(super) struct Type {
    pub name: String,
    pub target: Option<f64>,
}

/// One of several states by their probabilities.
#[derive(Debug)]
pub(super) struct Choice {
    pub table: Aliases,
    pub states: Vec<u16>,
}

/// The files that there are many of.
#[derive(Debug)]
pub(super) struct Files {
    /// `GET /files/SITE/`.
    pub head: Vec<u8>,
    /// Users are numbered from 1 to this.
    pub users: u32,
    pub checks: CheckFiles,
    pub products: ProductFiles,
    pub directories: Aliases,
    pub classes: Aliases,
    /// By class: which item, and its length as base and step.
    pub items: Vec<(Aliases, (u64, u64))>,
}

/// One thing that can be asked for.
#[derive(Debug)]
pub(super) struct State {
    pub what: What,
    pub counted_as: u16,
    pub secure: bool,
    pub thinks: bool,
    /// Whether it has one of the user's checks, or a product, in it.
    pub has_check: bool,
    pub has_product: bool,
    pub embedded: Vec<Part>,
    pub next: Choice,
}

/// A file that belongs to a page.
#[derive(Debug)]
pub(super) struct Part {
    pub file: File,
    /// See [`threshold`].
    pub unchanged: u64,
}

#[derive(Debug)]
pub(super) enum What {
    Page(Page),
    File(File),
    Download,
}

#[derive(Debug)]
pub(super) struct Page {
    /// `GET /SITE/PAGE`.
    pub head: Vec<u8>,
    /// `SITE&COMMAND`.
    pub query: Vec<u8>,
    /// `?NAME=` or `&NAME=`, and whose value follows.
    pub parameters: Vec<(Vec<u8>, Parameter)>,
    /// What comes before the proof.
    pub beginning: Vec<u8>,
    /// Least bytes of the body.
    pub least: u64,
}

#[derive(Debug)]
pub(super) enum File {
    Fixed {
        /// `GET PATH`.
        head: Vec<u8>,
        id: u64,
        bytes: u64,
    },
    Check {
        front: bool,
    },
    Product {
        class: u8,
    },
}

/// An error of a site that is not possible.
fn wrong(what: String) -> DriverError {
    DriverError::invalid(format!("the site {what}"), "correct the tables of the site")
}

impl Site {
    /// Compiles the site of a driver.
    ///
    /// # Errors
    /// [`DriverError::Invalid`] when a probability is none or several are more than 1 together, when a state or a type is named that
    /// there is not, when files are asked for of which the file set has none, or when a name cannot stand in an address.
    pub fn compile(drive: &WebDrive) -> Result<Self, DriverError> {
        let site = &drive.site;
        word("name", &site.name)?;
        if drive.host.is_empty() || !drive.host.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(wrong(format!("has {:?} as the name of its host", drive.host)));
        }
        names(site)?;
        let files = Files::compile(site)?;
        let states: Vec<State> = site
            .states
            .iter()
            .map(|state| State::compile(site, state, drive.tls.is_some()))
            .collect::<Result<_, _>>()?;
        let entry: f64 = site.entry.iter().map(|(_, p)| p).sum();
        if site.entry.is_empty() || (entry - 1.0).abs() > SLACK {
            return Err(wrong(format!("has first requests whose probabilities add up to {entry}, not to 1")));
        }
        let has_downloads = states.iter().any(|state| matches!(state.what, What::Download));
        let downloads = match site.downloads {
            Some((good, tolerable)) if good >= tolerable && tolerable >= 0.0 => (good, tolerable),
            Some(rates) => return Err(wrong(format!("has {rates:?} as good and tolerable byte rates of downloads"))),
            None if has_downloads => return Err(wrong("has downloads but no byte rates to judge them by".to_owned())),
            None => (0.0, 0.0),
        };
        if site.pages.good_ns > site.pages.tolerable_ns {
            return Err(wrong("finds good what it does not find tolerable".to_owned()));
        }
        Ok(Self {
            entry: Choice::compile(site, "entry", &site.entry)?,
            types: types(site),
            think: site.think,
            pages: site.pages,
            downloads,
            files,
            salt: drive.salt,
            check: drive.check,
            host: format!(" HTTP/1.1\r\nHost: {}\r\n", drive.host).into_bytes(),
            states,
        })
    }

    /// Things that can be asked for; they are known by numbers from 0.
    pub const fn states(&self) -> usize {
        self.states.len()
    }

    /// A state that a session may begin with.
    pub fn first(&self) -> u16 {
        self.entry.states.first().copied().unwrap_or(0)
    }

    /// Whether its quality is its byte rate.
    pub fn is_download(&self, state: u16) -> bool {
        matches!(self.states[usize::from(state)].what, What::Download)
    }

    /// Files that belong to this state.
    pub fn embedded(&self, state: u16) -> u16 {
        self.states[usize::from(state)].embedded.len() as u16
    }

    /// Whether it is asked for over TLS; never where the server has none.
    pub fn secure(&self, state: u16) -> bool {
        self.states[usize::from(state)].secure
    }
}

fn types(site: &SiteModel) -> Vec<Type> {
    let of = |(index, name): (usize, &String)| {
        let targets = site.states.iter().filter(|state| usize::from(state.counted_as) == index);
        let target = targets.filter_map(|state| state.target).reduce(|a, b| a + b);
        Type { name: name.clone(), target }
    };
    site.types.iter().enumerate().map(of).collect()
}

/// Refuses what cannot stand in an address as it is.
fn word(what: &str, text: &str) -> Result<(), DriverError> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.~".contains(&byte);
    if text.is_empty() || !text.bytes().all(plain) {
        return Err(wrong(format!("has {text:?} as {what}, which cannot stand in an address")));
    }
    Ok(())
}

fn names(site: &SiteModel) -> Result<(), DriverError> {
    let mut seen = BTreeSet::new();
    if let Some(twice) = site.states.iter().find(|state| !seen.insert(&state.name)) {
        return Err(wrong(format!("has two states named {:?}", twice.name)));
    }
    // The last number says that a session ends.
    if site.states.is_empty() || site.states.len() >= usize::from(END) {
        return Err(wrong(format!("has {} states", site.states.len())));
    }
    Ok(())
}

/// Probabilities, each possible and no more than 1 together; their sum.
fn probabilities(of: &str, all: impl Iterator<Item = f64>) -> Result<f64, DriverError> {
    let mut sum = 0.0;
    for p in all {
        if !(0.0..=1.0).contains(&p) {
            return Err(wrong(format!("has the probability {p} in {of}")));
        }
        sum += p;
    }
    if sum > 1.0 + SLACK {
        return Err(wrong(format!("has probabilities in {of} that add up to {sum}")));
    }
    Ok(sum)
}

impl Choice {
    fn compile(site: &SiteModel, of: &str, next: &[(u16, f64)]) -> Result<Self, DriverError> {
        if let Some((state, _)) = next.iter().find(|(state, _)| usize::from(*state) >= site.states.len()) {
            return Err(wrong(format!("goes from {of} to state {state}, which there is not")));
        }
        let left = 1.0 - probabilities(of, next.iter().map(|(_, p)| *p))?;
        let (mut states, mut weights): (Vec<u16>, Vec<f64>) = next.iter().copied().unzip();
        if left > SLACK || states.is_empty() {
            states.push(END);
            weights.push(left);
        }
        Ok(Self { table: Aliases::new(&weights), states })
    }
}

impl State {
    fn compile(site: &SiteModel, state: &SiteState, tls: bool) -> Result<Self, DriverError> {
        let name = &state.name;
        if usize::from(state.counted_as) >= site.types.len() {
            return Err(wrong(format!("counts {name} as request type {}, which there is not", state.counted_as)));
        }
        if state.embedded.len() > usize::from(u16::MAX) {
            return Err(wrong(format!("has {} files in {name}", state.embedded.len())));
        }
        let what = match &state.body {
            Body::Page { title, command, parameters, padding } => {
                word("a page", name)?;
                What::Page(Page::compile(site, name, (title, *command), parameters, *padding)?)
            }
            Body::File(file) => What::File(File::compile(site, name, file)?),
            Body::Download if site.files.downloads.is_some() => What::Download,
            Body::Download => return Err(wrong(format!("has no downloads, but {name} is one"))),
        };
        let part = |embedded: &Embedded| {
            probabilities(name, std::iter::once(embedded.unchanged))?;
            let file = File::compile(site, name, &embedded.file)?;
            Ok(Part { file, unchanged: threshold(embedded.unchanged) })
        };
        let embedded: Vec<Part> = state.embedded.iter().map(part).collect::<Result<_, DriverError>>()?;
        let files = || embedded.iter().map(|part| &part.file).chain(what.file());
        let carries = |wanted: Parameter| what.parameters().iter().any(|(_, parameter)| *parameter == wanted);
        Ok(Self {
            has_check: carries(Parameter::Check) || files().any(|file| matches!(file, File::Check { .. })),
            has_product: carries(Parameter::Product) || files().any(|file| matches!(file, File::Product { .. })),
            counted_as: state.counted_as,
            secure: state.secure && tls,
            thinks: state.thinks,
            next: Choice::compile(site, name, &state.next)?,
            what,
            embedded,
        })
    }
}

impl What {
    fn parameters(&self) -> &[(Vec<u8>, Parameter)] {
        if let Self::Page(page) = self { &page.parameters } else { &[] }
    }

    const fn file(&self) -> Option<&File> {
        if let Self::File(file) = self { Some(file) } else { None }
    }
}

impl Page {
    fn compile(
        site: &SiteModel,
        name: &str,
        (title, command): (&str, u16),
        parameters: &[(String, Parameter)],
        least: u64,
    ) -> Result<Self, DriverError> {
        let mut compiled = Vec::with_capacity(parameters.len());
        for (at, (parameter, value)) in parameters.iter().enumerate() {
            word("a parameter", parameter)?;
            let there = match value {
                Parameter::Check => site.files.checks.is_some(),
                Parameter::Product => site.files.products.is_some(),
                Parameter::Choice(below) => *below > 0,
                Parameter::User | Parameter::Token => true,
            };
            if !there {
                return Err(wrong(format!("has the parameter {parameter} in {name}, but nothing to choose from")));
            }
            let sign = if at == 0 { '?' } else { '&' };
            compiled.push((format!("{sign}{parameter}=").into_bytes(), *value));
        }
        let beginning =
            format!("<!DOCTYPE html><html><head><title>{title}</title><meta name=\"proof\" content=\"").into_bytes();
        Ok(Self {
            head: format!("GET /{}/{name}", site.name).into_bytes(),
            query: format!("{}&{command}", site.name).into_bytes(),
            parameters: compiled,
            beginning,
            least,
        })
    }
}

impl File {
    fn compile(site: &SiteModel, of: &str, file: &FileRef) -> Result<Self, DriverError> {
        let missing = |what: &str| wrong(format!("has no {what}, but {of} asks for one"));
        match file {
            FileRef::Fixed { path, bytes } => {
                if !path.starts_with('/') || !path.bytes().all(|byte| byte.is_ascii_graphic()) {
                    return Err(wrong(format!("has a file {path:?} in {of}, which is no path of an address")));
                }
                Ok(Self::Fixed {
                    head: format!("GET {path}").into_bytes(),
                    id: file_id(path.as_bytes()),
                    bytes: *bytes,
                })
            }
            FileRef::Check { front } => {
                site.files.checks.as_ref().ok_or_else(|| missing("images of checks"))?;
                Ok(Self::Check { front: *front })
            }
            FileRef::Product { class } => {
                let products = site.files.products.as_ref().ok_or_else(|| missing("images of products"))?;
                if usize::from(*class) >= products.classes.len() {
                    return Err(missing(&format!("images of products of class {class}")));
                }
                Ok(Self::Product { class: *class })
            }
        }
    }
}

impl Files {
    fn compile(site: &SiteModel) -> Result<Self, DriverError> {
        let files = &site.files;
        if let Some(checks) = &files.checks
            && (checks.users == 0 || !(1..=10).contains(&checks.checks))
        {
            return Err(wrong(format!("has {} users with {} checks each", checks.users, checks.checks)));
        }
        if let Some(products) = &files.products
            && (!(1..=MOST_DIRECTORIES).contains(&products.directories)
                || !(1..=10).contains(&products.items)
                || !(1..=26).contains(&products.classes.len()))
        {
            return Err(wrong(format!(
                "has {} directories of {} products with {} images each",
                products.directories,
                products.items,
                products.classes.len()
            )));
        }
        let (directories, classes, items) = match &files.downloads {
            Some(downloads) => downloads_of(downloads)?,
            None => (Aliases::default(), Aliases::default(), Vec::new()),
        };
        Ok(Self {
            head: format!("GET /files/{}/", site.name).into_bytes(),
            users: files.checks.as_ref().map_or(USERS, |checks| checks.users),
            checks: files.checks.clone().unwrap_or_default(),
            products: files.products.clone().unwrap_or_default(),
            directories,
            classes,
            items,
        })
    }
}

/// How downloads are chosen: by directory, by class, and within a class.
type Downloads = (Aliases, Aliases, Vec<(Aliases, (u64, u64))>);

fn downloads_of(files: &DownloadFiles) -> Result<Downloads, DriverError> {
    if !(1..=MOST_DIRECTORIES).contains(&files.directories) || !files.zipf.is_finite() || files.zipf < 0.0 {
        return Err(wrong(format!(
            "has {} directories of downloads with a popularity of exponent {}",
            files.directories, files.zipf
        )));
    }
    // Zipf: the n-th most popular is asked for in proportion to n^-s. Directory 0 is the most popular.
    let weights: Vec<f64> = (1..=files.directories).map(|rank| f64::from(rank).powf(-files.zipf)).collect();
    let whole = |of: &str, shares: &[f64]| -> Result<Aliases, DriverError> {
        let sum = probabilities(of, shares.iter().copied())?;
        // Published with three or four digits: they need not add up to 1 to the last.
        if sum < 0.99 {
            return Err(wrong(format!("has probabilities in {of} that add up to {sum}, not to 1")));
        }
        Ok(Aliases::new(shares))
    };
    let shares: Vec<f64> = files.classes.iter().map(|class| class.share).collect();
    let classes = whole("classes of downloads", &shares)?;
    let items = files
        .classes
        .iter()
        .map(|class| Ok((whole("a class of downloads", &class.within)?, class.size)))
        .collect::<Result<_, DriverError>>()?;
    Ok((Aliases::new(&weights), classes, items))
}
