//! What can be wrong with the tables of a site.

use std::collections::{BTreeMap, BTreeSet};

use tare_model::field::FieldError;

use super::tables::{State, StateFile, Tables};

/// Probabilities are written with few digits: so far from 1 they may add up.
const OFF: f64 = 1e-6;
/// Most images of a page: their names have two digits.
const IMAGES_MAX: u32 = 100;
/// Most products of a directory and checks of a user: their numbers have one digit.
const ITEMS_MAX: u32 = 10;
/// Classes of products are letters.
const LETTERS: usize = 26;
/// Longest body of a page that is not a slip, bytes.
const BODY_MAX: u64 = 16 << 20;

type Checked = Result<(), FieldError>;

fn wrong<T>(path: &[&str], why: impl Into<String>) -> Result<T, FieldError> {
    Err(FieldError::new(path, why))
}

/// What is wrong with a site; the path is that of the field, states by their names.
pub(super) fn check(tables: &Tables) -> Checked {
    if !is_name(&tables.name) {
        return wrong(&["name"], "it must be of letters, digits, - and _");
    }
    let mut names = BTreeSet::new();
    for state in &tables.states {
        if !is_name(&state.name) {
            return wrong(&["states", &state.name, "name"], "it must be of letters, digits, - and _");
        }
        if !names.insert(state.name.as_str()) {
            return wrong(&["states", &state.name], "there are two of that name");
        }
    }
    if names.is_empty() || names.len() > usize::from(u16::MAX) {
        return wrong(&["states"], format!("{} states are none, or too many", names.len()));
    }
    let entry = probabilities(&tables.entry, &names).map_err(|error| error.within(&["entry"]))?;
    if (entry - 1.0).abs() > OFF {
        return wrong(&["entry"], format!("the probabilities add up to {entry}, not to 1"));
    }
    times(tables)?;
    files(tables).map_err(|error| error.within(&["files"]))?;
    for state in &tables.states {
        one(tables, state, &names).map_err(|error| error.within(&["states", &state.name]))?;
    }
    let targets: f64 = tables.states.iter().filter_map(|state| state.target).sum();
    if targets > 100.5 {
        return wrong(&["states"], format!("the targets add up to {targets} %"));
    }
    Ok(())
}

/// Whether it can be part of an address and of a file's name.
fn is_name(text: &str) -> bool {
    let fit = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    !text.is_empty() && text.len() <= 64 && text.chars().all(fit)
}

/// The sum of probabilities of states that there are.
fn probabilities(of: &BTreeMap<String, f64>, names: &BTreeSet<&str>) -> Result<f64, FieldError> {
    for (name, probability) in of {
        if !names.contains(name.as_str()) {
            return wrong(&[name], "there is no such state");
        }
        if !(0.0..=1.0).contains(probability) {
            return wrong(&[name], format!("{probability} is no probability"));
        }
    }
    Ok(of.values().sum())
}

fn times(tables: &Tables) -> Checked {
    let think = tables.think;
    if think.most < think.mean || (think.mean.ns == 0) != (think.most.ns == 0) {
        return wrong(&["think", "most"], format!("{} and a mean of {} do not go together", think.most, think.mean));
    }
    if tables.pages.tolerable < tables.pages.good || tables.pages.good.ns == 0 {
        return wrong(&["pages", "tolerable"], "it must be at least as long as `good`, and that not 0");
    }
    if !(0.0..=0.5).contains(&tables.image_spread) {
        return wrong(&["image-spread"], format!("{} is not between 0 and 0.5", tables.image_spread));
    }
    match tables.downloads {
        Some(rates) if !(rates.tolerable > 0.0 && rates.good >= rates.tolerable && rates.good.is_finite()) => {
            wrong(&["downloads", "tolerable"], "it must be above 0 and at most as much as `good`")
        }
        _ => Ok(()),
    }
}

/// A number of something for each session.
fn per_session(number: f64, path: &[&str]) -> Checked {
    if number.is_finite() && number > 0.0 && number <= 1e5 {
        return Ok(());
    }
    wrong(path, format!("{number} is not above 0, or too much"))
}

fn files(tables: &Tables) -> Checked {
    if let Some(checks) = &tables.files.checks {
        per_session(checks.users_per_session, &["checks", "users-per-session"])?;
        if !(1..=ITEMS_MAX).contains(&checks.checks) {
            return wrong(&["checks", "checks"], format!("{} is not between 1 and {ITEMS_MAX}", checks.checks));
        }
    }
    if let Some(products) = &tables.files.products {
        per_session(products.directories_per_session, &["products", "directories-per-session"])?;
        if !(1..=ITEMS_MAX).contains(&products.items) {
            return wrong(&["products", "items"], format!("{} is not between 1 and {ITEMS_MAX}", products.items));
        }
        if !(1..=LETTERS).contains(&products.classes.len()) {
            return wrong(&["products", "classes"], format!("there must be 1 to {LETTERS} of them"));
        }
    }
    let Some(downloads) = &tables.files.downloads else { return Ok(()) };
    per_session(downloads.directories_per_session, &["downloads", "directories-per-session"])?;
    if !(0.0..=10.0).contains(&downloads.zipf) {
        return wrong(&["downloads", "zipf"], format!("{} is not between 0 and 10", downloads.zipf));
    }
    let sum: f64 = downloads.classes.iter().map(|class| class.share).sum();
    if (sum - 1.0).abs() > OFF {
        return wrong(&["downloads", "classes"], format!("the shares add up to {sum}, not to 1"));
    }
    for (number, class) in downloads.classes.iter().enumerate() {
        let number = number.to_string();
        let sum: f64 = class.within.iter().sum();
        let fit = class.within.iter().chain([&class.share]).all(|share| (0.0..=1.0).contains(share));
        if !fit || (sum - 1.0).abs() > OFF {
            let why = format!("shares must lie between 0 and 1 and add up to 1; they add up to {sum}");
            return wrong(&["downloads", "classes", &number, "within"], why);
        }
        if class.size.0 == 0 {
            return wrong(&["downloads", "classes", &number, "size"], "a download has at least one byte");
        }
    }
    Ok(())
}

/// One state by itself.
fn one(tables: &Tables, state: &State, names: &BTreeSet<&str>) -> Checked {
    let next = probabilities(&state.next, names).map_err(|error| error.within(&["next"]))?;
    if next > 1.0 + OFF {
        return wrong(&["next"], format!("the probabilities add up to {next}, more than 1"));
    }
    if state.target.is_some_and(|target| !(0.0..=100.0).contains(&target)) {
        return wrong(&["target"], "it must be between 0 and 100 %");
    }
    if state.counted_as.as_ref().is_some_and(|name| !is_name(name)) {
        return wrong(&["counted-as"], "it must be of letters, digits, - and _");
    }
    match state.file {
        None => page(tables, state),
        Some(file) => alone(tables, state, file),
    }
}

/// A file by itself.
fn alone(tables: &Tables, state: &State, file: StateFile) -> Checked {
    let paged = state.title.is_some() || state.command.is_some() || state.images.is_some();
    if paged || !state.parameters.is_empty() || !state.products.is_empty() || state.padding + state.data > 0 {
        return wrong(&["file"], "a file has neither title nor command, parameters, images or padding");
    }
    match file {
        StateFile::CheckFront | StateFile::CheckBack if tables.files.checks.is_none() => {
            wrong(&["file"], "there are no checks: `files.checks` is missing")
        }
        StateFile::Download if tables.files.downloads.is_none() || tables.downloads.is_none() => {
            wrong(&["file"], "there are no downloads: `files.downloads` or `downloads` is missing")
        }
        _ => Ok(()),
    }
}

/// A page.
fn page(tables: &Tables, state: &State) -> Checked {
    let Some(title) = &state.title else { return wrong(&["title"], "a page needs one") };
    if title.is_empty() || title.chars().any(|c| c.is_control() || "<>&".contains(c)) {
        return wrong(&["title"], "it must be a line without <, > and &");
    }
    if state.command.is_none_or(|command| command == 0) {
        return wrong(&["command"], "a page needs one above 0");
    }
    parameters(state).map_err(|error| error.within(&["parameters"]))?;
    let has = |name: &str| state.parameters.iter().any(|known| known == name);
    if let Some(images) = state.images {
        if images.files == 0 || images.files > IMAGES_MAX {
            return wrong(&["images", "files"], format!("{} is not between 1 and {IMAGES_MAX}", images.files));
        }
        if images.full < u64::from(images.files) || images.expected > images.full {
            return wrong(
                &["images", "expected"],
                "each image has at least a byte, and not more can come than there is",
            );
        }
    }
    let classes = tables.files.products.as_ref().map_or(0, |products| products.classes.len());
    for class in &state.products {
        let there = (0..classes).any(|index| *class == letter(index).to_string());
        if !there || !has("product") {
            return wrong(
                &["products"],
                format!("`{class}` is no class of `files.products`, or the page has no `product`"),
            );
        }
    }
    if has("product") && tables.files.products.is_none() {
        return wrong(&["parameters"], "there are no products: `files.products` is missing");
    }
    if has("check") && tables.files.checks.is_none() {
        return wrong(&["parameters"], "there are no checks: `files.checks` is missing");
    }
    if state.padding.saturating_add(state.data) > BODY_MAX {
        return wrong(&["padding"], format!("a page of more than {BODY_MAX} bytes is a slip"));
    }
    Ok(())
}

/// The letter of a class of products.
pub(super) fn letter(class: usize) -> char {
    char::from(b'a' + (class % LETTERS) as u8)
}

/// Names of parameters whose values are the user's; others are choices.
const KNOWN: [&str; 4] = ["user", "check", "product", "token"];

fn parameters(state: &State) -> Checked {
    let mut seen = BTreeSet::new();
    for name in &state.parameters {
        if !is_name(name) || !seen.insert(name.as_str()) {
            return wrong(&[], format!("`{name}` is twice there, or no name"));
        }
        let choice = state.choices.get(name);
        if KNOWN.contains(&name.as_str()) == choice.is_some() {
            return wrong(&[], format!("`{name}` must be one of {}, or in `choices`", KNOWN.join(", ")));
        }
        if choice.is_some_and(|below| *below == 0) {
            return wrong(&[], format!("there is no number below 0 for `{name}`"));
        }
    }
    if let Some(stray) = state.choices.keys().find(|name| !seen.contains(name.as_str())) {
        return wrong(&[], format!("`{stray}` is in `choices` and not among them"));
    }
    if state.parameters.last().map(String::as_str) != Some("token") {
        return wrong(&[], "the last must be `token`, which distinguishes a kept answer from a new one");
    }
    Ok(())
}
