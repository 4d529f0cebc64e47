//! What runs leave in their folders: is a secret in it, or a name of this host?

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use tare_analysis::Share;
use toml::{Table, Value};

use super::bar::Bar;
use super::ground::Ground;
use super::study;
use crate::exit::{Exit, Failure};

/// Secrets that are planted.
const PLANTED: usize = 60;
/// A name that is shorter is part of many words.
const LEAST_CHARS: usize = 5;

/// A text that must not be found, and what it is. What it is may be shown.
struct Canary {
    what: String,
    text: String,
}

/// What names this host and whoever uses it.
fn names() -> Vec<Canary> {
    let mut found = Vec::new();
    let mut add = |what: &str, text: &str| {
        let text = text.trim();
        let said = fs::read_to_string("/etc/os-release").unwrap_or_default().to_lowercase();
        // The name of the distribution is in every run folder, whatever the host is called.
        if text.chars().count() >= LEAST_CHARS
            && !said.contains(&text.to_lowercase())
            && !text.trim_matches(['0', ':']).is_empty()
        {
            found.push(Canary { what: what.to_owned(), text: text.to_owned() });
        }
    };
    add("the host's name", &rustix::system::uname().nodename().to_string_lossy());
    let of_user = ["USER", "LOGNAME", "SUDO_USER", "HOME"].map(|name| (name, std::env::var(name).unwrap_or_default()));
    // Every guest has that one, too.
    for (name, value) in of_user.iter().filter(|(_, value)| value != "/root") {
        add(&format!("${name}"), value);
    }
    let mut file = |what: &str, path: &Path| add(what, &fs::read_to_string(path).unwrap_or_default());
    file("the machine id", Path::new("/etc/machine-id"));
    for name in ["product_serial", "product_uuid", "board_serial", "chassis_serial"] {
        file(name, &Path::new("/sys/class/dmi/id").join(name));
    }
    for entry in fs::read_dir("/sys/class/net").into_iter().flatten().flatten() {
        file("the address of a network card", &entry.path().join("address"));
    }
    for entry in fs::read_dir("/sys/block").into_iter().flatten().flatten() {
        file("the serial number of a disk", &entry.path().join("device/serial"));
    }
    found
}

/// A study with secrets in it.
struct Planted {
    study: String,
    canaries: Vec<Canary>,
    /// For tare's environment.
    variables: Vec<(String, String)>,
}

/// The study with its secrets, which are in it, in files of a folder and in variables of tare's own.
fn planted(given: &Path) -> Result<Planted, Failure> {
    let mut study = study::table(study::SECRETS)?;
    let (mut canaries, mut variables, mut env) = (Vec::new(), Vec::new(), Table::new());
    for n in 0..PLANTED {
        let text = format!("cnry-{n}-{:016x}", rand::random::<u64>());
        let source = match n % 3 {
            0 => Value::String(text.clone()),
            1 => {
                let path = given.join(format!("secret-{n}"));
                super::put(&path, &text)?;
                Value::Table(Table::from_iter([("from-file".to_owned(), path.display().to_string().into())]))
            }
            _ => {
                let name = format!("TARE_PROVE_{n}");
                variables.push((name.clone(), text.clone()));
                Value::Table(Table::from_iter([("from-env".to_owned(), name.into())]))
            }
        };
        env.insert(format!("SECRET_{n}"), source);
        canaries.push(Canary { what: format!("planted secret {n}"), text });
    }
    let parameters =
        study.get_mut("cases").and_then(|cases| cases.get_mut("prints")?.get_mut("parameters")?.as_table_mut());
    if let Some(parameters) = parameters {
        parameters.insert("env".to_owned(), Value::Table(env));
    }
    Ok(Planted { study: study.to_string(), canaries, variables })
}

/// All files below a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let is_folder = |entry: &fs::DirEntry| entry.file_type().is_ok_and(|kind| kind.is_dir());
    entries.flat_map(|entry| if is_folder(&entry) { files(&entry.path()) } else { vec![entry.path()] }).collect()
}

fn holds(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|window| window.eq_ignore_ascii_case(text.as_bytes()))
}

/// Whether a secret, or a name of this host, is in what runs leave behind.
pub fn bars(ground: &Ground<'_>) -> Result<Vec<Bar>, Failure> {
    let failed = |error: std::io::Error| Failure::new(format!("secrets could not be planted: {error}"), Exit::Failure);
    let given = tempfile::tempdir().map_err(failed)?;
    let Planted { study, mut canaries, variables } = planted(given.path())?;
    let ran = ground.study("secrets", &study)?.given(variables).run()?;
    let printed = fs::read(&ran.log).map_err(failed)?;
    let mut notes = Vec::new();
    // The command printed them and failed: its trial is there, and what was taken out of its output.
    let report = fs::read_to_string(ran.folder.join("report.md")).unwrap_or_default();
    if !report.contains("=[redacted]") {
        let why = ran.findings().err().unwrap_or_default();
        notes.push(format!("the run that was to have the secrets had none to take out. {why}"));
        return Ok(vec![bar(Share::default(), notes)]);
    }
    let own = canaries.len();
    canaries.extend(names());
    // Run folders are what is published; studies and logs beside them are not.
    let files: Vec<PathBuf> = ground.folders().iter().flat_map(|path| files(path)).collect();
    let mut share = Share::default();
    let mut places = vec![String::new(); canaries.len()];
    for file in &files {
        let bytes = fs::read(file).map_err(|error| {
            Failure::new(format!("{} cannot be searched: {error}; start the proof anew", file.display()), Exit::Failure)
        })?;
        for (_, places) in canaries.iter().zip(&mut places).filter(|(canary, _)| holds(&bytes, &canary.text)) {
            let _ = write!(places, " {}", file.strip_prefix(ground.runs()).unwrap_or(file).display());
        }
    }
    for (n, (canary, places)) in canaries.iter().zip(&places).enumerate() {
        let said = n < own && holds(&printed, &canary.text);
        share.add(said || !places.is_empty());
        if said || !places.is_empty() {
            notes.push(format!("{} is in{}{places}", canary.what, if said { " what was printed," } else { "" }));
        }
    }
    notes.push(format!(
        "{own} secrets were planted, {} names are this host's own, {} files were searched",
        canaries.len() - own,
        files.len()
    ));
    Ok(vec![bar(share, notes)])
}

fn bar(share: Share, notes: Vec<String>) -> Bar {
    Bar::counted("secrets", "No secret and no name of this host is in a run folder", (0.0, "texts"), share, notes)
}
