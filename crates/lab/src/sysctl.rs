//! Settings under /proc/sys/net of the namespace that this thread is in.

use std::fs;
use std::io::ErrorKind;

use crate::error::{LabError, Result};

fn file(name: &str) -> String {
    format!("/proc/sys/{}", name.replace('.', "/"))
}

/// The value, white space joined by one space; `None` where the kernel has no such setting.
pub(crate) fn read(name: &str) -> Result<Option<String>> {
    match fs::read_to_string(file(name)) {
        Ok(text) => Ok(Some(text.split_whitespace().collect::<Vec<_>>().join(" "))),
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(None),
        Err(e) => Err(LabError::system(format!("read sysctl {name}"), e)),
    }
}

/// Sets a value where the kernel has the setting at all.
pub(crate) fn write_if_there(name: &str, value: &str) -> Result<()> {
    match fs::OpenOptions::new().write(true).open(file(name)).and_then(|mut f| {
        use std::io::Write;
        f.write_all(value.as_bytes())
    }) {
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(()),
        other => other.map_err(|e| LabError::system(format!("set sysctl {name} to {value}"), e)),
    }
}

/// Makes the namespace of this thread one of the lab's: no IPv6 (its duplicate address detection and router
/// solicitations would be traffic of their own), no forwarding, no packet filter on the bridge. To be
/// done before the namespace has links, which take their settings from `default`.
pub(crate) fn prepare_namespace(congestion_control: Option<&str>) -> Result<()> {
    for (name, value) in [
        ("net.ipv6.conf.all.disable_ipv6", "1"),
        ("net.ipv6.conf.default.disable_ipv6", "1"),
        ("net.ipv4.ip_forward", "0"),
        ("net.bridge.bridge-nf-call-iptables", "0"),
        ("net.bridge.bridge-nf-call-arptables", "0"),
    ] {
        write_if_there(name, value)?;
    }
    congestion_control.map_or(Ok(()), set_congestion_control)
}

const CONGESTION_CONTROL: &str = "net.ipv4.tcp_congestion_control";

/// Sets the congestion control that new TCP connections of this namespace use, and reads it back.
fn set_congestion_control(wanted: &str) -> Result<()> {
    let tried = format!("set TCP congestion control `{wanted}` in the lab");
    let list = |name: &str| read(name).ok().flatten().unwrap_or_else(|| "unknown".into());
    let unavailable = |why: String| {
        let allowed = list("net.ipv4.tcp_allowed_congestion_control");
        let available = list("net.ipv4.tcp_available_congestion_control");
        LabError::Unavailable {
            tried: tried.clone(),
            why: format!("{why} (available here: {available}; allowed as a namespace's default: {allowed})"),
            remedy: format!(
                "Choose one that is allowed; or load it (modprobe tcp_{wanted}) and add it to sysctl \
                 net.ipv4.tcp_allowed_congestion_control on the host; or set it per socket in the study"
            ),
        }
    };
    if wanted.is_empty() || !wanted.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-') {
        return Err(unavailable("that is no name of one".into()));
    }
    if let Err(error) = fs::write(file(CONGESTION_CONTROL), wanted) {
        return Err(unavailable(match error.raw_os_error() {
            Some(libc::ENOENT) => "this kernel does not have it".into(),
            Some(libc::EPERM) => "the kernel keeps it from being the default of a namespace".into(),
            _ => error.to_string(),
        }));
    }
    match read(CONGESTION_CONTROL)? {
        Some(granted) if granted == wanted => Ok(()),
        granted => Err(unavailable(format!("it reads back as `{}`", granted.unwrap_or_default()))),
    }
}
