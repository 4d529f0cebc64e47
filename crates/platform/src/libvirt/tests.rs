//! libvirt's own test driver, for real: the library is loaded, and everything but a guest is there.
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tare_model::guest::{GuestSize, GuestSpec};
use tare_model::{ByteSize, Refusal};

use super::connection::open;
use super::held::Held;
use super::sys::Connection;
use super::xml::Node;
use super::*;
use crate::ReapSite;
use crate::held::Held as _;
use crate::machine::attempt::Limits;
use crate::probe_cache::Failure;

#[path = "../../tests/common/libvirtd.rs"]
mod libvirtd;

const URI: &str = "test:///default";
/// Longer than an emulated guest takes.
const LONG: Duration = Duration::from_secs(120);

/// Tells that a test is skipped and why, past the test harness, which would keep it to itself.
fn skipped(reason: &str) {
    // Standard output that cannot be written must not fail the test that skips.
    let _ = writeln!(std::io::stdout(), "SKIPPED: {reason}");
}

/// A connection to the test driver; says that the test is skipped where there is no libvirt.
fn connected() -> Option<Arc<Connection>> {
    match open(URI) {
        Ok(connection) => Some(connection),
        Err(error) => {
            skipped(&error.to_string());
            None
        }
    }
}

fn held(guest: &str) -> Held {
    let size = GuestSize { cpus: 2, memory: ByteSize(64 << 20) };
    Held::new(URI, "unit", &GuestSpec::new(guest, size)).unwrap()
}

fn description(held: &Held) -> String {
    let system = Node::new("os").child(Node::new("type").text("hvm"));
    let domain = Node::new("domain")
        .with("type", "test")
        .child(Node::new("name").text(&held.name))
        .child(Node::new("uuid").text(&held.uuid))
        .child(Node::new("memory").with("unit", "b").text(64 << 20))
        .child(Node::new("vcpu").text(2))
        .child(system);
    domain.write().unwrap()
}

#[test]
fn a_domain_is_defined_started_ended_and_gone() {
    let Some(connection) = connected() else { return };
    assert_eq!(connection.driver().unwrap(), "TEST");
    assert!(sys::library_version().unwrap() > 1_000_000);
    assert!(connection.versions().unwrap().0 > 1_000_000);
    assert!(Node::parse(&connection.capabilities().unwrap()).unwrap().find("host").is_some());
    let held = held("lifecycle");
    let domain = connection.define(&description(&held)).unwrap();
    assert_eq!((domain.name().unwrap(), domain.uuid().unwrap()), (held.name.clone(), held.uuid.clone()));
    assert_eq!(domain.state().unwrap(), 5, "shut off");
    assert!(domain.create(true).unwrap_err().is_flag_refused(), "this driver cannot start a domain paused");
    domain.create(false).unwrap();
    assert_eq!(domain.state().unwrap(), 1, "running");
    let spec = GuestSpec::new("g", GuestSize { cpus: 2, memory: ByteSize(64 << 20) });
    let rows = machine::granted(&spec, &Node::parse(&domain.description().unwrap()).unwrap());
    assert!(rows.iter().all(|row| row.equal), "{rows:?}");
    assert_eq!(domain.vcpu_times_ns(8).unwrap().len(), 2);
    assert!(domain.pin_vcpu(1, 0).unwrap_err().is_flag_refused(), "this driver pins no running one");
    assert!(domain.pin_vcpu(0, 100_000).is_err(), "there is no such CPU");
    held.stop().unwrap();
    assert_eq!(domain.state().unwrap(), 5);
    for _ in 0..2 {
        held.take_away(Path::new("/agent")).unwrap();
        assert!(connection.by_uuid(&held.uuid).err().unwrap().is_no_domain());
    }
}

#[test]
fn a_run_that_was_killed_is_reaped_from_what_was_written_down() {
    let Some(connection) = connected() else { return };
    let held = held("reaped");
    connection.define(&description(&held)).unwrap().create(false).unwrap();
    let site = |run_id| ReapSite { run_id, state: Path::new("/nowhere"), agent: Path::new("/nowhere") };
    let error = (ENTRY.reap)(&site("another"), &held.token()).unwrap_err().to_string();
    assert!(error.contains("is not of the run another"), "{error}");
    assert_eq!(connection.by_name(&held.name).unwrap().state().unwrap(), 1);
    (ENTRY.reap)(&site("unit"), &held.token()).unwrap();
    assert!(connection.by_name(&held.name).is_err());
    (ENTRY.reap)(&site("unit"), &held.token()).unwrap();
}

#[test]
fn a_domain_of_the_users_is_stopped_and_stays() {
    let Some(connection) = connected() else { return };
    let mut held = held("theirs");
    held.made = false;
    let domain = connection.define(&description(&held)).unwrap();
    domain.create(false).unwrap();
    held.take_away(Path::new("/agent")).unwrap();
    assert_eq!(domain.state().unwrap(), 5);
    domain.undefine(0).unwrap();
}

#[test]
fn errors_are_in_libvirts_own_words() {
    let Some(connection) = connected() else { return };
    let error = connection.by_name("nobody").err().unwrap();
    assert!(error.is_no_domain() && error.to_string().contains("Domain not found"), "{error}");
    let error = connection.define("<domain").err().unwrap().to_string();
    assert!(error.contains("could not define a domain: ") && error.len() > 50, "{error}");
    assert!(connection.by_name("no\0body").is_err());
    let held = held("errors");
    let domain = connection.define(&description(&held)).unwrap();
    assert!(domain.destroy().err().unwrap().is_wrong_state());
    let error = connection.channel(&domain, "org.tare.agent.0").err().unwrap();
    assert!(error.is_unsupported(), "{error}");
    let error = domain.revert("yesterday").unwrap_err().to_string();
    assert!(error.contains("yesterday"), "{error}");
    domain.undefine(0).unwrap();
}

fn refusal(options: &Value) -> Refusal {
    let host = HostView { rootless: false, limits_unavailable: None, agent: "/nowhere".into() };
    Libvirt::new(options::read(options).unwrap()).check(&host).unwrap_err()
}

#[test]
fn connections_that_lead_to_no_agent_are_refused_with_the_reason() {
    for uri in ["esx://host/", "xen:///system", "hyperv://host/", "vz:///system", "lxc:///system", URI] {
        let Refusal { reason, remedy } = refusal(&json!({"uri": uri}));
        assert!(reason.starts_with(uri) && remedy.contains("docs/reference/libvirt.md"), "{reason}. {remedy}");
    }
}

#[test]
fn a_daemon_that_is_not_there_is_reported_with_the_remedy() {
    let Some(_) = connected() else { return };
    let Refusal { reason, remedy } = refusal(&json!({"uri": "qemu:///system?socket=/nowhere/socket"}));
    assert!(reason.contains("/nowhere/socket"), "{reason}");
    assert!(remedy.contains("systemctl start libvirtd"), "{remedy}");
}

/// The attempt by which KVM is believed, emulated: so it is known to answer where a guest boots.
#[test]
fn the_attempt_boots_a_guest_to_its_agent_and_leaves_nothing() {
    let beside = std::env::current_exe().unwrap().ancestors().nth(2).unwrap().join("tare-agent");
    let agent = std::env::var_os("TARE_AGENT").map_or(beside, Into::into);
    if !agent.exists() || tare_image::Kernel::find(None).is_err() {
        return skipped("needs the agent and a kernel for virtual machines (`make platforms`)");
    }
    let daemon = match libvirtd::Daemon::start() {
        Ok(daemon) => daemon,
        Err(why) => return skipped(&why),
    };
    let connection = open(&daemon.uri()).unwrap();
    let options = Options::default();
    let tries = |options, limits| accel::boots(&connection, options, &agent, false, limits);
    let booted = tries(&options, Limits { still: LONG, within: LONG });
    assert_eq!(booted, Ok(()), "{}", daemon.log());
    let name = format!("tare-probe-{}", std::process::id());
    assert!(connection.by_name(&name).err().unwrap().is_no_domain());
    // No agent answers so soon: what is still on its way is no verdict, and one that stands still is.
    let short = Duration::from_millis(10);
    let slow = tries(&options, Limits { still: LONG, within: short }).unwrap_err();
    assert!(matches!(slow, Failure::Passing(_)) && slow.reason().contains("boot-within"), "{slow:?}");
    let stands = tries(&options, Limits { still: short, within: LONG }).unwrap_err();
    assert!(matches!(stands, Failure::Lasting(_)) && stands.reason().contains("stood still"), "{stands:?}");
    assert!(connection.by_name(&name).err().unwrap().is_no_domain());
    // One whose first process ends at once, upon which its kernel panics: a processor that ran a kernel works.
    let limits = Limits { still: LONG, within: LONG };
    let panics = accel::boots(&connection, &options, Path::new("/bin/true"), false, limits).unwrap_err();
    assert!(matches!(panics, Failure::Passing(_)) && panics.reason().contains("domain is"), "{panics:?}");
    assert!(!panics.reason().ends_with("it said: nothing"), "its console is read: {panics:?}");
    // A machine whose QEMU ends at once.
    let refused = Options { cpu_model: Some("no-such-processor".into()), ..Options::default() };
    let ended = tries(&refused, limits).unwrap_err();
    assert!(matches!(ended, Failure::Lasting(_)), "{ended:?}");
}
