//! Finding a secret where a study says that it is.

use std::path::Path;

use serde_json::Value;
use tare_model::field::FieldError;
use tare_model::secret::{FromEnv, FromFile, Secret, SecretSource};

use crate::regular;

/// Longer files are no secrets.
const FILE_BYTES: u64 = 64 << 10;

/// Whether the secret looks as if it could be found: the variable is set, the file is there. Nothing is read.
///
/// # Errors
/// What is missing.
pub(crate) fn look(source: &SecretSource) -> Result<(), FieldError> {
    match source {
        SecretSource::Given(_) => Ok(()),
        SecretSource::Env(FromEnv { from_env }) => match variable(from_env) {
            true => Ok(()),
            false => Err(not_set(from_env)),
        },
        SecretSource::File(FromFile { from_file }) => match std::fs::metadata(from_file) {
            Ok(found) if found.is_file() => Ok(()),
            Ok(_) => Err(unusable(from_file, "is no regular file")),
            Err(error) => Err(unusable(from_file, &format!("cannot be read: {error}"))),
        },
    }
}

/// The secret.
///
/// # Errors
/// Where it is not found. The error does not hold it.
pub fn resolve(source: &SecretSource) -> Result<Secret, FieldError> {
    match source {
        SecretSource::Given(text) => Ok(Secret::new(text)),
        SecretSource::Env(FromEnv { from_env }) if !variable(from_env) => Err(not_set(from_env)),
        SecretSource::Env(FromEnv { from_env }) => std::env::var(from_env).map(Secret::new).map_err(|_| {
            FieldError::new(&["from-env"], format!("the environment variable `{from_env}` does not hold UTF-8"))
        }),
        SecretSource::File(FromFile { from_file }) => read(Path::new(from_file)).map(Secret::new),
    }
}

/// Every secret that parameters name by where it is found. What cannot be found is left out: whoever needs it says so.
pub fn found_in(parameters: &Value) -> Vec<Secret> {
    let inner: Vec<&Value> = match parameters {
        Value::Object(map) => map.values().collect(),
        Value::Array(items) => items.iter().collect(),
        _ => return Vec::new(),
    };
    let source = serde_json::from_value(parameters.clone()).ok();
    let own = source.as_ref().and_then(|source| resolve(source).ok());
    own.into_iter().chain(inner.into_iter().flat_map(found_in)).collect()
}

fn variable(name: &str) -> bool {
    // The standard library cannot ask for other names.
    let sound = !name.is_empty() && !name.contains(['=', '\0']);
    sound && std::env::var_os(name).is_some()
}

fn not_set(name: &str) -> FieldError {
    FieldError::new(&["from-env"], format!("the environment variable `{name}` is not set"))
        .help(format!("set it where tare is started: `{name}=... tare run STUDY`"))
}

fn unusable(path: &str, why: &str) -> FieldError {
    FieldError::new(&["from-file"], format!("the file `{path}` {why}"))
        .help("name a file of this host that holds the secret and that tare may read")
}

/// What the file holds, without the line feed at its end.
fn read(path: &Path) -> Result<String, FieldError> {
    let failed = |error| unusable(&path.display().to_string(), &format!("cannot be read: {error}"));
    let text = regular::read(path, FILE_BYTES).map_err(failed)?;
    let end = text.strip_suffix('\n').map(|text| text.strip_suffix('\r').unwrap_or(text));
    Ok(end.map(str::to_owned).unwrap_or(text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn source(value: Value) -> SecretSource {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn a_secret_is_found_where_the_study_says() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("password");
        std::fs::write(&file, "hunter2\n").unwrap();
        let of_file = source(json!({"from-file": file}));
        assert_eq!((look(&of_file).is_ok(), resolve(&of_file).unwrap().reveal()), (true, "hunter2"));
        // Cargo sets it for every test.
        let of_variable = source(json!({"from-env": "CARGO_MANIFEST_DIR"}));
        assert_eq!(resolve(&of_variable).unwrap().reveal(), env!("CARGO_MANIFEST_DIR"));
        let nested = json!({"members": [{"env": {"A": {"from-file": file}, "B": {"from-env": "NO_SUCH"}}}]});
        let found: Vec<String> = found_in(&nested).iter().map(|secret| secret.reveal().to_owned()).collect();
        assert_eq!(found, ["hunter2"]);
    }

    #[test]
    fn what_holds_no_secret_is_refused_by_its_field_and_never_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let large = folder.path().join("large");
        std::fs::write(&large, vec![b'x'; 65 << 10]).unwrap();
        for (value, field) in [
            (json!({"from-env": "NO_SUCH_VARIABLE"}), "from-env"),
            (json!({"from-env": "A=B"}), "from-env"),
            (json!({"from-env": ""}), "from-env"),
            (json!({"from-file": "/no/such/file"}), "from-file"),
            (json!({"from-file": "/"}), "from-file"),
            (json!({"from-file": pipe}), "from-file"),
            (json!({"from-file": large}), "from-file"),
        ] {
            let error = resolve(&source(value.clone())).unwrap_err();
            assert_eq!(error.path, [field], "{value}");
            assert!(look(&source(value)).is_err() || error.message.contains("64 KiB"));
        }
    }
}
