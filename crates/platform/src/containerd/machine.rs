//! Kata Containers: guests that are small virtual machines. What their limits mean, and what of that can be seen.

use tare_model::guest::{GuestSpec, ParityRow};
use tare_model::{ByteSize, Refusal};
use tare_wire::AgentFacts;

use crate::parity;

/// Looks whether machines can be booted here.
///
/// # Errors
/// Why they cannot, and the remedy.
pub(super) fn look() -> Result<(), Refusal> {
    let remedy = "Load the module (`modprobe kvm_intel` or `modprobe kvm_amd`), turn virtualization on in the firmware, or \
                  give this virtual machine nested virtualization";
    let refused = |error| Refusal::new(format!("Kata's guests need KVM, and /dev/kvm is not here: {error}"), remedy);
    std::fs::metadata("/dev/kvm").map(drop).map_err(refused)
}

/// What a reader of a report must know.
pub(super) fn disclosures(allowance: ByteSize) -> Vec<String> {
    vec![
        "Each guest is a small virtual machine of Kata Containers, with a kernel of its own, booted for it. It has no filter of system \
         calls: its kernel is not the host's. tare's own tests have never run a guest of Kata's, for want of KVM where they run: take \
         the first figures with care."
            .into(),
        "Kata makes the machine larger than asked: `default_vcpus` and `default_memory` of its configuration come on top of the \
         limits. The limits themselves are set in the machine by Kata's own agent, which is not read back, and on the host for the \
         whole machine in tare's control group, which is."
            .into(),
        format!(
            "The host's memory limit is {allowance} above the guest's, for the machine's kernel, the hypervisor and the file server. \
             They are moved into the guest's control group when the machine has booted: memory that they had touched by then is \
             charged elsewhere."
        ),
        "The guest's files are the host's overlay through Kata's file server; of the host's root, file systems that are mounted below it \
         are not seen."
            .into(),
    ]
}

/// Rows of what such a guest shows, and of what nobody can read from here.
pub(super) fn inside(spec: &GuestSpec, facts: &AgentFacts, mtu: u32, congestion: Option<&str>) -> Vec<ParityRow> {
    let cpus = usize::try_from(spec.size.cpus).ok();
    let mut rows = parity::in_own_kernel(spec, cpus, facts, mtu, congestion);
    for row in rows.iter_mut().filter(|row| row.resource.ends_with("seen inside")) {
        row.note.push_str("; Kata adds the defaults of its configuration to what is asked");
    }
    let note = "Kata's agent is asked to set it in the machine; it is not read back";
    let unread = |resource: &str, asked: String| parity::row(resource, asked, None, note);
    rows.push(unread("cpu quota in the machine", format!("{} CPUs", spec.size.cpus)));
    rows.push(unread("memory limit in the machine", spec.size.memory.to_string()));
    rows
}

#[cfg(test)]
mod tests {
    use super::*;
    use tare_model::guest::GuestSize;

    #[test]
    fn what_is_not_read_back_is_not_called_equal() {
        let size = GuestSize { cpus: 2, memory: ByteSize(1 << 30) };
        let spec = GuestSpec::new("g", size);
        let fact = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let facts = [fact("cpus allowed", "0-2"), fact("mtu eth0", "1500"), fact("memory total", "3110000 kB")];
        let rows = inside(&spec, &AgentFacts { facts: facts.into() }, 1500, None);
        let named = |name: &str| rows.iter().find(|row| row.resource == name);
        let cpus = named("cpus seen inside").map(|row| (row.asked.as_str(), row.granted.as_deref(), row.equal));
        assert_eq!(cpus, Some(("2", Some("3"), false)));
        assert!(named("memory seen inside").is_some_and(|row| !row.equal && row.note.contains("defaults")));
        assert!(named("link mtu").is_some_and(|row| row.equal));
        for name in ["cpu quota in the machine", "memory limit in the machine"] {
            assert!(named(name).is_some_and(|row| row.granted.is_none() && !row.equal), "{rows:?}");
        }
    }

    #[test]
    fn a_reader_hears_that_it_was_never_seen_and_how_large_it_is() {
        let said = disclosures(ByteSize(512 << 20)).join(" ");
        for word in ["virtual machine", "never run", "default_vcpus", "512MiB"] {
            assert!(said.contains(word), "{word}: {said}");
        }
    }
}
