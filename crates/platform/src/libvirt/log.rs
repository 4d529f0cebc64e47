//! The log that libvirt's system daemon on this host keeps of each domain of QEMU's. How a domain ended stands there alone.

use std::fs;
use std::io::{ErrorKind, Read, Seek, SeekFrom};
use std::path::PathBuf;

use super::uri::Uri;

const LOGS: &str = "/var/log/libvirt/qemu";
/// The end of a log that is looked at, in bytes.
const END: u64 = 4096;

/// Where the log of this domain is, for a domain of this host.
fn path(uri: &str, domain: &str) -> Option<PathBuf> {
    let ours = Uri::parse(uri).is_ok_and(|uri| uri.local && uri.driver == "qemu") && !domain.contains('/');
    ours.then(|| format!("{LOGS}/{domain}.log").into())
}

/// The last line of the domain's log, where this process may read it.
pub(super) fn last_line(uri: &str, domain: &str) -> Option<String> {
    let mut file = fs::File::open(path(uri, domain)?).ok()?;
    let length = file.metadata().ok()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(END))).ok()?;
    let mut end = Vec::new();
    file.take(END).read_to_end(&mut end).ok()?;
    let end = String::from_utf8_lossy(&end);
    end.lines().map(str::trim).rfind(|line| !line.is_empty()).map(str::to_owned)
}

/// Removes the log of a domain that tare made and took away: its name never comes again.
///
/// # Errors
/// Why the file is still there. A user without root has no such file.
pub(super) fn remove(uri: &str, domain: &str) -> Result<(), String> {
    let Some(path) = path(uri, domain) else { return Ok(()) };
    match fs::remove_file(&path) {
        Err(error) if !matches!(error.kind(), ErrorKind::NotFound | ErrorKind::PermissionDenied) => {
            Err(format!("remove its log {}: {error}", path.display()))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_domains_of_this_host_have_a_log_here() {
        assert_eq!(path("qemu:///system", "tare-1-kvm"), Some(PathBuf::from("/var/log/libvirt/qemu/tare-1-kvm.log")));
        for (uri, domain) in [
            ("qemu+ssh://other/system", "tare-1-kvm"),
            ("test:///default", "tare-1-kvm"),
            ("qemu:///system", "../../tare-1-kvm"),
        ] {
            assert_eq!(path(uri, domain), None, "{uri} {domain}");
        }
        assert_eq!(remove("qemu:///system", "tare-no-such-domain"), Ok(()));
        assert_eq!(last_line("qemu:///system", "tare-no-such-domain"), None);
    }
}
