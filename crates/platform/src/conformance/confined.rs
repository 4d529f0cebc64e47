//! What a guest that shares the host's kernel may not do, whoever it is inside.

use tare_model::guest::{GuestSpec, Seccomp};
use tare_wire::confine::capability_bits;

use super::{Broken, Ground, hold};
use crate::Guest;

/// Opens for writing what must not be written, and writes nothing to it: a guest that could would change this host.
const OPEN_FOR_WRITING: &str = "for f in /proc/sys/kernel/core_pattern /proc/sys/kernel/hostname /proc/sysrq-trigger \
    /sys/kernel/uevent_helper; do [ -e $f ] || continue; if (: >>$f) 2>/dev/null; then echo $f; fi; done";

/// What can be read of the memory of the host.
const READ_THE_KERNEL: &str = "dd if=/proc/kcore bs=1 count=1 2>/dev/null; true";

impl Ground<'_> {
    /// Its programs have what container engines leave to root, whichever platform it is; the filter is there unless the study
    /// turns it off.
    pub(super) fn is_confined(&self) -> Result<(), Broken> {
        if self.expect.own_kernel || !self.expect.limits {
            return Ok(());
        }
        for seccomp in [Seccomp::Default, Seccomp::Off] {
            let mut guest = self.start_as(&GuestSpec { seccomp, ..self.spec("confined") })?;
            self.gave_up(&*guest, seccomp)?;
            let said = self.said(&*guest, OPEN_FOR_WRITING)?;
            hold(said.is_empty(), || format!("a guest can write to {said}"))?;
            let said = self.said(&*guest, READ_THE_KERNEL)?;
            hold(said.is_empty(), || "a guest can read the host's memory at /proc/kcore".into())?;
            guest.destroy().map_err(|error| error.to_string())?;
        }
        self.is_clean("after confined guests")
    }

    /// What holds for a command that the agent starts.
    fn gave_up(&self, guest: &dyn Guest, seccomp: Seccomp) -> Result<(), Broken> {
        let status = self.said(guest, "cat /proc/self/status")?;
        let value = |key: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'));
            line.map(str::trim).unwrap_or_default().to_owned()
        };
        let bits = format!("{:016x}", capability_bits());
        let none = format!("{:016x}", 0);
        let mode = if seccomp == Seccomp::Default { "2" } else { "0" };
        let expected =
            [("CapBnd", bits.as_str()), ("CapEff", &bits), ("CapInh", &none), ("CapAmb", &none), ("NoNewPrivs", "1")];
        for (key, expected) in expected {
            let found = value(key);
            hold(found == expected, || format!("{key} of a command in a guest is {found}, not {expected}"))?;
        }
        let found = value("Seccomp");
        // Where tare itself is under a filter, all that it starts is.
        let own = std::fs::read_to_string("/proc/self/status").is_ok_and(|own| own.contains("Seccomp:\t2"));
        hold(found == mode || own, || {
            format!("the seccomp mode in a guest is {found}, not {mode}, at the level {}", seccomp.name())
        })?;
        let rows = guest.parity();
        let row = rows.iter().find(|row| row.resource == "system call filter");
        hold(row.is_some_and(|row| row.equal && row.asked == seccomp.name()), || {
            format!("the parity does not say that the filter is as asked: {row:?}")
        })
    }

    fn said(&self, guest: &dyn Guest, script: &str) -> Result<String, Broken> {
        let ran = self.exec(guest, &["sh", "-c", script])?;
        let said = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
        hold(ran.code == Some(0), || format!("`{script}` ended with {:?}: {}", ran.code, said(&ran.stderr)))?;
        Ok(said(&ran.stdout))
    }
}
