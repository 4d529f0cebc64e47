//! Connection URIs and what libvirt's drivers can do for tare.

use std::time::Duration;

use super::error::LibvirtError;

/// What matters of a connection URI: `driver[+transport]://[user@][host][:port]/[path][?parameters]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Uri {
    /// Its driver's scheme, such as `qemu`.
    pub driver: String,
    /// Whether its domains run on this host.
    pub local: bool,
}

/// How an agent can be reached in guests of a driver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Support {
    /// Guests are made, run and reached.
    Machines,
    /// Domains can be defined, started and stopped, but nothing leads to an agent; the reason.
    NoChannel(&'static str),
}

/// What is known of libvirt's drivers, by the scheme of their URIs. The functions of each driver are those of libvirt's
/// own table (libvirt.org/hvsupport.html).
const DRIVERS: [(&str, Support); 12] = [
    ("qemu", Support::Machines),
    ("test", Support::NoChannel("its domains are imagined: nothing runs in them")),
    (
        "lxc",
        Support::NoChannel(
            "its only way into a container is a console, a terminal that changes bytes and shows what anybody prints",
        ),
    ),
    ("esx", Support::NoChannel(NO_STREAM)),
    ("gsx", Support::NoChannel(NO_STREAM)),
    ("vpx", Support::NoChannel(NO_STREAM)),
    ("xen", Support::NoChannel("it opens consoles but no channels, and a console is a terminal that changes bytes")),
    ("hyperv", Support::NoChannel(NO_STREAM)),
    ("vz", Support::NoChannel(NO_STREAM)),
    ("vbox", Support::NoChannel(NO_STREAM)),
    ("bhyve", Support::NoChannel("it opens consoles but no channels, and a console is a terminal that changes bytes")),
    ("ch", Support::NoChannel("it opens consoles but no channels, and a console is a terminal that changes bytes")),
];

/// Why drivers of hypervisors elsewhere do not do.
const NO_STREAM: &str = "it starts and stops domains, and opens neither channels nor consoles";

impl Uri {
    /// What matters of the URI.
    ///
    /// # Errors
    /// What is wrong with it, in words.
    pub(super) fn parse(uri: &str) -> Result<Self, String> {
        let (scheme, rest) = uri.split_once("://").ok_or("a connection is written like qemu:///system")?;
        let (driver, transport) = scheme.split_once('+').map_or((scheme, None), |(driver, way)| (driver, Some(way)));
        let plain = |word: &str| !word.is_empty() && word.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit());
        if !plain(driver) || !transport.is_none_or(plain) {
            return Err(format!("`{scheme}` is no driver; a connection is written like qemu:///system"));
        }
        if uri.chars().any(|c| c.is_control() || c.is_whitespace()) {
            return Err("a connection has no blanks in it".into());
        }
        let host = rest.split(['/', '?']).next().unwrap_or_default();
        let local = host.is_empty() && transport.is_none_or(|transport| transport == "unix");
        Ok(Self { driver: driver.to_owned(), local })
    }

    /// What its driver can do.
    pub(super) fn support(&self) -> Option<Support> {
        DRIVERS.iter().find(|(driver, _)| *driver == self.driver).map(|(_, support)| *support)
    }
}

/// What helps against an error of connecting.
pub(super) fn remedy(error: &LibvirtError, uri: &str) -> String {
    match error {
        LibvirtError::Library { .. } => {
            "Install libvirt's client library (Debian and Ubuntu: `apt install libvirt0 libvirt-daemon-system`; Fedora: \
             `dnf install libvirt-libs libvirt-daemon-kvm`)"
                .into()
        }
        LibvirtError::Static => {
            "Install tare's package for this distribution (.deb or .rpm), or build it here (`make build`): those load \
             libvirt's library"
                .into()
        }
        error if error.is_authentication() => {
            let local = Uri::parse(uri).is_ok_and(|uri| uri.local);
            authentication(local, tare_lab::is_rootless()).into()
        }
        error if error.is_unsupported() => {
            format!("Install the driver of {uri}: Debian and Ubuntu have one package each, libvirt-daemon-driver-*")
        }
        _ => format!(
            "Start libvirt's daemon (`systemctl start libvirtd`, or virtqemud where daemons are apart; without systemd \
             `virtlogd -d && libvirtd -d`) and try `virsh -c {uri} list`"
        ),
    }
}

/// What helps who is not let in. A daemon of this host asks polkit about users, and lets root in without it.
const fn authentication(local: bool, rootless: bool) -> &'static str {
    match (local, rootless) {
        (false, _) => {
            "Put the user and the password into libvirt's own file for them, auth.conf (libvirt.org/auth.html)"
        }
        (true, true) => {
            "Join the group `libvirt` (`usermod -aG libvirt USER`, then log in again), which polkit lets in. Without polkit \
             (on Debian: `apt install polkitd`) also write auth_unix_rw = \"none\" and unix_sock_group = \"libvirt\" into \
             /etc/libvirt/libvirtd.conf (virtqemud.conf where daemons are apart) and restart the daemon. Or use this \
             user's own connection, uri = \"qemu:///session\""
        }
        (true, false) => {
            "libvirt's daemon lets root in without polkit, unless it is set up to ask for a password, or sees another user: \
             write auth_unix_rw = \"none\" into /etc/libvirt/libvirtd.conf (virtqemud.conf where daemons are apart) and \
             restart the daemon, or put user and password into auth.conf (libvirt.org/auth.html)"
        }
    }
}

/// Calls that go over a connection end after so long, whatever is at the other end.
pub(super) const CALL_LIMIT: Duration = Duration::from_secs(30);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_is_local_or_not() {
        let local = |uri: &str| Uri::parse(uri).unwrap().local;
        for uri in ["qemu:///system", "qemu+unix:///system?socket=/run/x", "test:///default", "lxc:///system"] {
            assert!(local(uri), "{uri}");
        }
        for uri in ["qemu+ssh://root@host/system", "esx://host/?no_verify=1", "qemu+tls:///system", "qemu://h:1/system"]
        {
            assert!(!local(uri), "{uri}");
        }
        for bad in ["", "qemu", "qemu:/system", "+ssh://h/", "qemu+://h/", "QE MU:///", "qemu:///sys tem", "a;b://c"] {
            assert!(Uri::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn what_a_driver_supports_is_known_by_its_name() {
        let support = |uri: &str| Uri::parse(uri).unwrap().support();
        assert_eq!(support("qemu+ssh://host/system"), Some(Support::Machines));
        assert!(matches!(support("esx://host/"), Some(Support::NoChannel(_))));
        assert_eq!(support("parallel:///x"), None);
        assert!(remedy(&LibvirtError::Library { why: String::new() }, "x").contains("libvirt0"));
        assert!(remedy(&LibvirtError::Static, "x").contains(".deb"));
    }

    #[test]
    fn who_is_not_let_in_is_shown_the_way_in() {
        let code = 94; // VIR_ERR_AUTH_UNAVAILABLE: polkit is not there.
        let unavailable = LibvirtError::Refused { tried: "connect".into(), code, message: String::new() };
        let said = remedy(&unavailable, "qemu:///system");
        assert!(said.contains("auth_unix_rw") && !said.contains("systemctl start"), "{said}");
        assert!(remedy(&unavailable, "qemu+tls://h/system").contains("auth.conf"));
        let user = authentication(true, true);
        assert!(["libvirt", "polkit", "qemu:///session"].iter().all(|word| user.contains(word)), "{user}");
        assert!(!authentication(true, false).contains("group"), "root needs no group");
    }
}
