//! The guest's interfaces.

use std::fs;
use std::io;
use std::path::Path;

use super::config::GuestConfig;
use super::modules::Modules;
use super::{InitError, Result, during, sys, wait_until};

/// Where the kernel shows the interfaces.
const LINKS: &str = "/sys/class/net";

/// The first interface of a driver is called so: there is nobody here to rename it.
const FIRST: &str = "eth0";

/// Brings the loopback interface up, and the guest's own if it has an address.
pub(super) fn bring_up(config: &GuestConfig, modules: &mut Modules) -> Result<()> {
    if let Some(name) = &config.congestion {
        modules.load(&format!("congestion-{name}"))?;
        let file = "/proc/sys/net/ipv4/tcp_congestion_control";
        fs::write(file, name).map_err(during(format!("set the congestion control {name}")))?;
    }
    let wants_ipv6 = config.address.is_some_and(|(address, _)| address.is_ipv6());
    if wants_ipv6 {
        // Nobody else can have the address: it need not be asked for, which takes a second.
        set_ipv6("accept_dad", "0")?;
    } else {
        // As in the lab: its own traffic would be in the counters.
        set_ipv6("disable_ipv6", "1")?;
    }
    sys::bring_up("lo").map_err(during("bring the interface lo up"))?;
    let Some((address, prefix)) = config.address else { return Ok(()) };
    let link = &own_link(config.card.as_deref(), modules)?;
    if wants_ipv6 {
        set_ipv6_of(link, "accept_dad", "0")?;
    }
    if let Some(mtu) = config.mtu {
        sys::set_mtu(link, mtu).map_err(during(format!("set the MTU of {link} to {mtu}")))?;
    }
    if address.is_ipv4() {
        sys::set_address(link, address, prefix).map_err(during(format!("set the address {address}/{prefix}")))?;
    }
    sys::bring_up(link).map_err(during(format!("bring the interface {link} up")))?;
    if wants_ipv6 {
        sys::set_address(link, address, prefix).map_err(during(format!("set the address {address}/{prefix}")))?;
    }
    Ok(())
}

/// The interface that the address is for: that of a card of the host's, whose driver is loaded first, or the only one.
fn own_link(card: Option<&str>, modules: &mut Modules) -> Result<String> {
    if card.is_some() {
        modules.load("card")?;
    }
    let is_it = |name: &str| match card {
        Some(mac) => hardware_address(name).is_some_and(|own| own.eq_ignore_ascii_case(mac)),
        None => name == FIRST,
    };
    wait_until(|| names().into_iter().find(|name| is_it(name))).ok_or_else(|| {
        let there = names().into_iter().map(|name| format!("{name} {}", hardware_address(&name).unwrap_or_default()));
        InitError {
            tried: format!("find the network interface {}", card.unwrap_or(FIRST)),
            why: format!(
                "it did not appear; there is {}, and {}",
                there.collect::<Vec<_>>().join(", "),
                super::modules::devices()
            ),
        }
    })
}

fn names() -> Vec<String> {
    let Ok(entries) = fs::read_dir(LINKS) else { return Vec::new() };
    entries.filter_map(|entry| Some(entry.ok()?.file_name().to_string_lossy().into_owned())).collect()
}

fn hardware_address(name: &str) -> Option<String> {
    Some(fs::read_to_string(Path::new(LINKS).join(name).join("address")).ok()?.trim().to_owned())
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
    Ok(())
}

/// The settings for all do not reach an interface that was made before.
fn set_ipv6_of(link: &str, what: &str, value: &str) -> Result<()> {
    match fs::write(format!("/proc/sys/net/ipv6/conf/{link}/{what}"), value) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(during(format!("set {what} of {link}"))(error)),
        _ => Ok(()),
    }
}
