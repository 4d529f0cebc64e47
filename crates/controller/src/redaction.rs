//! What must not be written into a run folder, nor shown.

use tare_model::redact::Redactor;
use tare_model::study::Study;

/// Where the kernel tells the name of this host.
const HOST_NAME: &str = "/proc/sys/kernel/hostname";
/// The variable from which PostgreSQL's clients take a password.
const PASSWORD_VARIABLE: &str = "PGPASSWORD";

/// Variables that name who runs tare, by name or by home directory.
const USER_VARIABLES: [&str; 4] = ["USER", "LOGNAME", "SUDO_USER", "HOME"];

/// One that knows the secrets of a study, those too that it names by where they are found, and the names of machines: this
/// one's, and those that the study names. Secrets are read here, so this is asked for a run and never for a plan.
/// `names`: whether the names of machines and people are taken out as well.
pub fn redactor(study: &Study, names: bool) -> Redactor {
    let mut redactor = Redactor::of(study, names);
    for case in &study.cases {
        for secret in tare_workload::secret::found_in(&case.parameters) {
            redactor.add_secret(secret.reveal());
        }
    }
    if let Ok(password) = std::env::var(PASSWORD_VARIABLE) {
        redactor.add_secret(&password);
    }
    if let Ok(name) = std::fs::read_to_string(HOST_NAME) {
        redactor.add_name(name.trim());
    }
    for variable in USER_VARIABLES {
        if let Ok(name) = std::env::var(variable) {
            // A home directory by its last part.
            redactor.add_name(name.rsplit('/').next().unwrap_or_default());
        }
    }
    redactor
}
