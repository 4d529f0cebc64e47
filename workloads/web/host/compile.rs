//! The tables of a site as drivers, servers and the file set need them.

use std::collections::BTreeMap;
use std::fmt::Write;

use crate::web::spec::{
    Body, CheckFiles, DownloadClass, DownloadFiles, Embedded, FileRef, FileSet, Parameter, ProductFiles, Quality,
    SiteModel, SiteState, Think,
};

use super::check::letter;
use super::tables::{Files, Images, State, StateFile, Tables};

/// Numbers of directories have five digits, those of users ten, of which the driver takes 32 bits.
pub(super) const DIRECTORIES_MAX: u32 = 99_999;

/// The site. Its file set is that of `files`.
pub(super) fn compile(tables: &Tables, files: FileSet) -> SiteModel {
    let index: BTreeMap<&str, u16> =
        (0..).zip(&tables.states).map(|(number, state)| (state.name.as_str(), number)).collect();
    let mut types: Vec<String> = Vec::new();
    let mut counted = |state: &State| {
        let name = state.counted_as.as_ref().unwrap_or(&state.name);
        let known = types.iter().position(|known| known == name).unwrap_or_else(|| {
            types.push(name.clone());
            types.len() - 1
        });
        // There are as many as states at most, which were counted.
        u16::try_from(known).unwrap_or(u16::MAX)
    };
    let states = tables.states.iter().map(|state| SiteState {
        name: state.name.clone(),
        counted_as: counted(state),
        body: body(state),
        secure: state.secure.unwrap_or(tables.secure),
        thinks: state.thinks,
        embedded: embedded(tables, state),
        next: indexed(&state.next, &index),
        target: state.target.map(|percent| percent / 100.0),
    });
    let states = states.collect();
    SiteModel {
        name: tables.name.clone(),
        states,
        types,
        entry: indexed(&tables.entry, &index),
        think: Think {
            mean_ns: tables.think.mean.ns,
            most_ns: tables.think.most.ns,
            step_ns: tables.think.granularity.ns,
        },
        pages: Quality { good_ns: tables.pages.good.ns, tolerable_ns: tables.pages.tolerable.ns },
        downloads: tables.downloads.map(|rates| (rates.good, rates.tolerable)),
        files,
    }
}

fn indexed(of: &BTreeMap<String, f64>, index: &BTreeMap<&str, u16>) -> Vec<(u16, f64)> {
    of.iter().filter_map(|(name, probability)| Some((*index.get(name.as_str())?, *probability))).collect()
}

fn body(state: &State) -> Body {
    match state.file {
        Some(StateFile::CheckFront) => Body::File(FileRef::Check { front: true }),
        Some(StateFile::CheckBack) => Body::File(FileRef::Check { front: false }),
        Some(StateFile::Download) => Body::Download,
        None => Body::Page {
            title: state.title.clone().unwrap_or_default(),
            command: state.command.unwrap_or_default(),
            parameters: state.parameters.iter().map(|name| (name.clone(), parameter(state, name))).collect(),
            padding: body_bytes(state),
        },
    }
}

/// Least bytes of a page's body.
pub(super) const fn body_bytes(state: &State) -> u64 {
    state.padding + state.data
}

fn parameter(state: &State, name: &str) -> Parameter {
    match (name, state.choices.get(name)) {
        (_, Some(below)) => Parameter::Choice(*below),
        ("user", None) => Parameter::User,
        ("check", None) => Parameter::Check,
        ("product", None) => Parameter::Product,
        _ => Parameter::Token,
    }
}

fn embedded(tables: &Tables, state: &State) -> Vec<Embedded> {
    let mut all =
        state.images.map_or_else(Vec::new, |images| fixed(&tables.name, &state.name, images, tables.image_spread));
    let classes = tables.files.products.as_ref().map_or(0, |products| products.classes.len());
    let class = |name: &String| (0..classes).find(|index| *name == letter(*index).to_string());
    // An image of a product is another one each time: nobody has it already.
    let products = state.products.iter().filter_map(class).map(|index| Embedded {
        file: FileRef::Product { class: u8::try_from(index).unwrap_or_default() },
        unchanged: 0.0,
    });
    all.extend(products);
    all
}

/// The fixed images of a page: equally long, but for what does not divide, and each with a probability of its own that the user
/// has it already: linear from image to image, at most `spread` from the mean, so that exactly the expected bytes come.
fn fixed(site: &str, page: &str, images: Images, spread: f64) -> Vec<Embedded> {
    let number = u64::from(images.files);
    let lengths: Vec<u64> = (0..number).map(|n| images.full / number + u64::from(n < images.full % number)).collect();
    let kept = (images.full - images.expected) as f64;
    let mean = kept / images.full as f64;
    // A little less than what is there below and above, for the correction.
    let spread = spread.min(0.98 * mean).min(0.98 * (1.0 - mean)).max(0.0);
    let steps = number.saturating_sub(1).max(1) as f64;
    let linear = |n: usize| if number > 1 { mean + spread * (2.0 * n as f64 / steps - 1.0) } else { mean };
    let sum: f64 = lengths.iter().enumerate().map(|(n, length)| *length as f64 * linear(n)).sum();
    let correction = (kept - sum) / images.full as f64;
    let image = |(n, bytes): (usize, u64)| Embedded {
        file: FileRef::Fixed { path: format!("/files/{site}/images/{page}/{n:02}.gif"), bytes },
        unchanged: (linear(n) + correction).clamp(0.0, 1.0),
    };
    lengths.into_iter().enumerate().map(image).collect()
}

/// So many for so many sessions, at least one.
fn number(per_session: f64, sessions: u32, most: u32) -> u32 {
    let exact = (per_session * f64::from(sessions)).ceil();
    // Within the bounds of 32 bits by the clamp.
    exact.clamp(1.0, f64::from(most)) as u32
}

/// The file set for so many sessions, with so many users or directories for each where that is given.
pub(super) fn file_set(files: &Files, per_session: Option<f64>, sessions: u32) -> FileSet {
    let of = |own: f64| per_session.unwrap_or(own);
    FileSet {
        checks: files.checks.as_ref().map(|checks| CheckFiles {
            users: number(of(checks.users_per_session), sessions, u32::MAX),
            checks: checks.checks,
            front: checks.front,
            back: checks.back,
        }),
        products: files.products.as_ref().map(|products| ProductFiles {
            directories: number(of(products.directories_per_session), sessions, DIRECTORIES_MAX),
            items: products.items,
            classes: products.classes.clone(),
        }),
        downloads: files.downloads.as_ref().map(|downloads| DownloadFiles {
            directories: number(of(downloads.directories_per_session), sessions, DIRECTORIES_MAX),
            zipf: downloads.zipf,
            classes: downloads.classes.iter().map(class).collect(),
        }),
    }
}

fn class(class: &super::tables::Class) -> DownloadClass {
    DownloadClass { share: class.share, size: class.size, within: class.within.clone() }
}

/// `pages.tsv`, from which the server makes its pages; docs/reference/web.md has its fields.
pub(super) fn pages(tables: &Tables) -> String {
    let mut text = String::new();
    for state in tables.states.iter().filter(|state| state.file.is_none()) {
        let addresses: Vec<String> =
            embedded(tables, state).iter().map(|embedded| address(&tables.name, &embedded.file)).collect();
        // Writing to a string does not fail.
        let _ = writeln!(
            text,
            "{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}",
            tables.name,
            state.name,
            state.title.as_deref().unwrap_or_default(),
            state.command.unwrap_or_default(),
            body_bytes(state),
            state.role.name(),
            state.parameters.join(","),
            addresses.join(",")
        );
    }
    text
}

/// The address of an embedded file, its parts that depend on the request in braces.
fn address(site: &str, file: &FileRef) -> String {
    match file {
        FileRef::Fixed { path, .. } => path.clone(),
        FileRef::Check { front } => {
            format!("/files/{site}/checks/{{user}}/{{check}}-{}.gif", if *front { "front" } else { "back" })
        }
        FileRef::Product { class } => {
            format!("/files/{site}/products/{{product-directory}}/{{product-item}}-{}.jpg", letter(usize::from(*class)))
        }
    }
}

#[cfg(test)]
mod tests;
