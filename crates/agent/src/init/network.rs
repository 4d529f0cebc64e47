//! The guest's interfaces.

use std::fs;
use std::io;
use std::path::Path;

use super::modules::Modules;
use super::told::Told;
use super::{InitError, Result, during, sys, wait_until};

/// The first interface of a driver is called so: there is nobody here to rename it.
const LINK: &str = "eth0";

/// Brings the loopback interface up, and the guest's own if it has an address.
pub(super) fn bring_up(told: &Told, modules: &mut Modules) -> Result<()> {
    if let Some(name) = &told.congestion {
        modules.load(&format!("congestion-{name}"))?;
        let file = "/proc/sys/net/ipv4/tcp_congestion_control";
        fs::write(file, name).map_err(during(format!("set the congestion control {name}")))?;
    }
    let wants_ipv6 = told.address.is_some_and(|(address, _)| address.is_ipv6());
    if wants_ipv6 {
        // Nobody else can have the address: it need not be asked for, which takes a second.
        set_ipv6("accept_dad", "0")?;
    } else {
        // As in the lab: its own traffic would be in the counters.
        set_ipv6("disable_ipv6", "1")?;
    }
    sys::bring_up("lo").map_err(during("bring the interface lo up"))?;
    let Some((address, prefix)) = told.address else { return Ok(()) };
    wait_until(|| Path::new("/sys/class/net").join(LINK).exists().then_some(())).ok_or_else(|| InitError {
        tried: format!("find the network interface {LINK}"),
        why: format!("it did not appear; there is {}", super::modules::devices()),
    })?;
    if let Some(mtu) = told.mtu {
        sys::set_mtu(LINK, mtu).map_err(during(format!("set the MTU of {LINK} to {mtu}")))?;
    }
    if address.is_ipv4() {
        sys::set_address(LINK, address, prefix).map_err(during(format!("set the address {address}/{prefix}")))?;
    }
    sys::bring_up(LINK).map_err(during(format!("bring the interface {LINK} up")))?;
    if wants_ipv6 {
        sys::set_address(LINK, address, prefix).map_err(during(format!("set the address {address}/{prefix}")))?;
    }
    Ok(())
}

/// Sets what holds for the interfaces there are and those to come. A kernel without IPv6 has nothing to set.
fn set_ipv6(what: &str, value: &str) -> Result<()> {
    for which in ["all", "default"] {
        let file = format!("/proc/sys/net/ipv6/conf/{which}/{what}");
        match fs::write(&file, value) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(during(format!("write {file}"))(error));
            }
            _ => {}
        }
    }
    // The settings for all do not reach what was made before.
    match fs::write(format!("/proc/sys/net/ipv6/conf/{LINK}/{what}"), value) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(during(format!("set {what} of {LINK}"))(error)),
        _ => Ok(()),
    }
}
