//! A second copy of what was found of the host's settings, beside the run's lock: a run folder may be thrown away before the
//! run that was killed is reaped, and then nobody else knows what they were.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use crate::error::{LabError, Result};

/// Its name in the run's state directory.
const FILE: &str = "settings.json";

/// Keeps what is about to be changed in the run's state directory, until [`forget_settings`].
///
/// # Errors
/// When it cannot be written: then nothing may be changed.
pub fn keep_settings(state: &Path, found: &[(PathBuf, String)]) -> Result<()> {
    let file = state.join(FILE);
    let written = serde_json::to_vec(found).map_err(std::io::Error::other).and_then(|text| {
        // Whole or not at all: a killed run may be read in the midst of it.
        let beside = state.join(format!("{FILE}.new"));
        fs::write(&beside, text)?;
        fs::rename(&beside, &file)
    });
    written.map_err(|source| LabError::System {
        tried: format!("keep the host's settings in {}", file.display()),
        source,
        remedy: "Is /run full or read-only?".into(),
    })
}

/// They are put back.
///
/// # Errors
/// When the copy cannot be removed; a reap would then write the same values once more.
pub fn forget_settings(state: &Path) -> Result<()> {
    let file = state.join(FILE);
    match fs::remove_file(&file) {
        Err(source) if source.kind() != ErrorKind::NotFound => {
            let remedy = "Remove it by hand".into();
            Err(LabError::System { tried: format!("remove {}", file.display()), source, remedy })
        }
        _ => Ok(()),
    }
}

/// What a run has kept and not forgotten; `None` without any, or where it cannot be read.
pub(crate) fn kept_settings(state: &Path) -> Option<Vec<(PathBuf, String)>> {
    serde_json::from_slice(&fs::read(state.join(FILE)).ok()?).ok()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn what_is_kept_is_there_until_it_is_forgotten() {
        let state = tempfile::tempdir().unwrap();
        let found = vec![(PathBuf::from("/sys/kernel/mm/ksm/run"), "0".to_owned())];
        assert_eq!(kept_settings(state.path()), None);
        keep_settings(state.path(), &found).unwrap();
        assert_eq!(kept_settings(state.path()), Some(found));
        forget_settings(state.path()).unwrap();
        forget_settings(state.path()).unwrap();
        assert_eq!(kept_settings(state.path()), None);
        let error = keep_settings(Path::new("/nonexistent"), &[]).unwrap_err();
        assert!(error.to_string().contains("settings.json"), "{error}");
    }
}
