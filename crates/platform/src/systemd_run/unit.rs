//! A transient service: how it is asked for, what systemd made of it, and how it is taken away.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use rustix::process::Rlimit;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::ReapSite;
use crate::builder::{environment, limits};
use crate::guest_setup::GuestSetup;
use crate::held::{self, check_name};
use crate::program::{self, PATH};

/// The program that asks systemd for the service, and the one that speaks D-Bus.
pub(super) const PROGRAM: &str = "systemd-run";
pub(super) const BUS: &str = "busctl";

/// What the service is protected by (systemd.exec(5)): mounts, a namespace of System V IPC, and no new privileges. What systemd would do by
/// filters of system calls is not among it, for the agent installs the same filter on every arm.
pub(super) const PROTECTION: [(&str, &str); 6] = [
    ("ProtectSystem", "strict"),
    ("ProtectHome", "read-only"),
    ("ProtectControlGroups", "yes"),
    ("PrivateTmp", "yes"),
    ("PrivateIPC", "yes"),
    ("NoNewPrivileges", "yes"),
];

/// The names of systemd on the bus.
const MANAGER: [&str; 3] =
    ["org.freedesktop.systemd1", "/org/freedesktop/systemd1", "org.freedesktop.systemd1.Manager"];
const SERVICE: &str = "org.freedesktop.systemd1.Service";

/// How long the bus may take to answer.
const TIMEOUT: Duration = Duration::from_secs(10);

/// How long systemd may take to forget a service whose processes were killed.
const GONE: Duration = Duration::from_secs(20);

/// Between two looks whether it has.
const AGAIN: Duration = Duration::from_millis(20);

/// A transient service, as it is written down.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Unit {
    run_id: String,
    /// Its name without `.service`.
    name: String,
}

/// What systemd made of it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Became {
    /// Its first process.
    pub process: u32,
    /// What it is protected by, as [`protection`] has it.
    pub protection: String,
}

/// A service that is to be started.
pub(super) struct Service<'a> {
    pub unit: &'a Unit,
    pub setup: GuestSetup<'a>,
    /// The network namespace of its link.
    pub netns: &'a Path,
}

impl Service<'_> {
    /// The arguments of the program. It stays until the service ends, whose streams are its own.
    pub(super) fn arguments(&self) -> Vec<String> {
        let mut all = ["--quiet", "--pipe", "--wait", "--collect", "--service-type=exec"].map(str::to_owned).to_vec();
        all.push(format!("--unit={}", self.unit.file()));
        let mut property = |name: &str, value: &str| all.push(format!("--property={name}={value}"));
        for (name, value) in PROTECTION {
            property(name, value);
        }
        property("NetworkNamespacePath", &self.netns.to_string_lossy());
        for data in self.setup.data.iter().filter(|data| !data.read_only) {
            property("ReadWritePaths", &quoted(&data.from));
        }
        // Nothing of the guest outlives it.
        property("KillSignal", "SIGKILL");
        // As on every other arm: systemd has some of its own.
        for (name, limit) in limits() {
            property(&format!("Limit{name}"), &written(limit));
        }
        all.extend(environment(self.setup.run_id).map(|(name, value)| format!("--setenv={name}={value}")));
        all.extend(["--".to_owned(), self.setup.agent.to_string_lossy().into_owned()]);
        // It begins when it is in its control group.
        all.push("wait".to_owned());
        all.extend(self.setup.confined());
        all
    }
}

/// A path as properties that are lists of paths take it.
fn quoted(path: &Path) -> String {
    let escaped = path.to_string_lossy().replace('\\', "\\\\").replace('"', "\\\"");
    // A specifier begins with a percent sign.
    format!("\"{}\"", escaped.replace('%', "%%"))
}

/// A limit as properties take it.
fn written(limit: Rlimit) -> String {
    let number = |limit: Option<u64>| limit.map_or_else(|| "infinity".to_owned(), |limit| limit.to_string());
    format!("{}:{}", number(limit.current), number(limit.maximum))
}

/// The protection in words.
pub(super) fn protection() -> String {
    PROTECTION.map(|(name, value)| format!("{name}={value}")).join(", ")
}

/// What the bus answers with these arguments: one value a line.
fn bus(arguments: &[&str]) -> Result<Vec<Value>, String> {
    let mut command = Command::new(super::program(BUS).map_err(|refusal| refusal.reason)?);
    command.args(["--system", "--json=short"]).args(arguments).env_clear().env("PATH", PATH);
    let tried = || format!("`{BUS} {}`", arguments.join(" "));
    let ran = program::run(&mut command, TIMEOUT).map_err(|error| format!("{} failed: {error}", tried()))?;
    if !ran.success {
        return Err(format!("{} failed: {}", tried(), ran.output.trim()));
    }
    let values = serde_json::Deserializer::from_str(&ran.output).into_iter::<Value>();
    let data = values.map(|value| value.map(|mut value| value.get_mut("data").map(Value::take).unwrap_or_default()));
    data.collect::<Result<_, _>>().map_err(|error| format!("{} answered no JSON: {error}", tried()))
}

/// The version of the systemd that runs.
///
/// # Errors
/// Why it is not reached by the bus.
pub(super) fn manager_version() -> Result<String, String> {
    let [service, object, interface] = MANAGER;
    let answer = bus(&["get-property", service, object, interface, "Version"])?;
    Ok(answer.first().and_then(Value::as_str).unwrap_or_default().to_owned())
}

/// A word of a path on the bus: all but letters and digits is written as `_` and its number.
fn label(name: &str) -> String {
    let plain = |at: usize, byte: u8| byte.is_ascii_alphabetic() || (at > 0 && byte.is_ascii_digit());
    let bytes = name.bytes().enumerate();
    bytes
        .map(|(at, byte)| if plain(at, byte) { char::from(byte).to_string() } else { format!("_{byte:02x}") })
        .collect()
}

impl Unit {
    /// The service of a guest.
    pub(super) fn new(run_id: &str, guest: &str) -> Self {
        Self { run_id: run_id.to_owned(), name: format!("tare-{run_id}-{guest}") }
    }

    fn file(&self) -> String {
        format!("{}.service", self.name)
    }

    /// What systemd made of it.
    ///
    /// # Errors
    /// Why that is not known.
    pub(super) fn became(&self) -> Result<Became, String> {
        let object = format!("{}/unit/{}", MANAGER[1], label(&self.file()));
        let asked = ["get-property", MANAGER[0], &object, SERVICE, "MainPID"];
        let names = PROTECTION.map(|(name, _)| name);
        read_back(&bus(&[&asked[..], &names[..]].concat())?)
    }

    /// Whether systemd knows it.
    fn is_there(&self) -> Result<bool, String> {
        let [service, object, interface] = MANAGER;
        let answer = bus(&["call", service, object, interface, "ListUnitsByNames", "as", "1", &self.file()])?;
        // Of each unit the third is whether it is loaded.
        let loaded = answer.first().and_then(|data| data[0][0][2].as_str()).map(str::to_owned);
        loaded
            .map(|loaded| loaded != "not-found")
            .ok_or_else(|| "systemd does not say whether the unit is there".into())
    }
}

/// The first process, and the protection in the order of [`PROTECTION`].
fn read_back(values: &[Value]) -> Result<Became, String> {
    let process = values.first().and_then(Value::as_u64).and_then(|process| u32::try_from(process).ok());
    let process = process.filter(|process| *process > 1).ok_or("systemd names no process of it")?;
    let word = |value: Option<&Value>| match value {
        Some(Value::Bool(on)) => if *on { "yes" } else { "no" }.to_owned(),
        Some(Value::String(word)) => word.clone(),
        _ => "not known".to_owned(),
    };
    let granted: Vec<_> =
        PROTECTION.iter().enumerate().map(|(at, (name, _))| format!("{name}={}", word(values.get(at + 1)))).collect();
    Ok(Became { process, protection: granted.join(", ") })
}

impl held::Held for Unit {
    const WHAT: &'static str = "the service";
    const REMEDY: &'static str = "Stop it with `systemctl stop`";

    fn check(&self, site: &ReapSite<'_>) -> Result<(), String> {
        check_name(site, &self.run_id, &self.name)
    }

    fn take_away(&self, _: &Path) -> Result<(), String> {
        let [service, object, interface] = MANAGER;
        let deadline = Instant::now() + GONE;
        let mut stopped = Ok(Vec::new());
        while self.is_there()? {
            if Instant::now() > deadline {
                let why = stopped.err().unwrap_or_else(|| format!("systemd still has it after {} s", GONE.as_secs()));
                return Err(format!("{}: {why}", self.file()));
            }
            // It may end by itself meanwhile, which is no failure.
            stopped = bus(&["call", service, object, interface, "StopUnit", "ss", &self.file(), "replace"]);
            std::thread::sleep(AGAIN);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tare_model::ByteSize;
    use tare_model::guest::{GuestSize, GuestSpec};

    use super::*;
    use crate::guest_setup::shown;
    use crate::held::Held;

    #[test]
    fn the_service_is_asked_for_with_its_protection_its_link_and_its_data() {
        let size = GuestSize { cpus: 1, memory: ByteSize(1 << 30) };
        let (spec, unit) = (GuestSpec::new("g", size), Unit::new("r", "g"));
        let netns = Path::new("/proc/7/fd/9");
        for read_only in [false, true] {
            let data = shown("/mnt/a \"b\" 5%", read_only);
            let service = Service { unit: &unit, setup: GuestSetup::of(&spec, "/a gent", &data), netns };
            let all = service.arguments();
            let has = |word: &str| all.iter().any(|argument| argument == word);
            assert!(has("--unit=tare-r-g.service") && has("--pipe") && has("--collect"), "{all:?}");
            assert!(has("--property=ProtectSystem=strict") && has("--property=PrivateTmp=yes"), "{all:?}");
            assert!(has("--property=NetworkNamespacePath=/proc/7/fd/9"), "{all:?}");
            assert_eq!(has("--property=ReadWritePaths=\"/mnt/a \\\"b\\\" 5%%\""), !read_only, "{all:?}");
            assert!(has("--setenv=TARE_RUN=r") && all.iter().any(|word| word.starts_with("--property=LimitNOFILE=")));
            assert!(all.ends_with(&["--", "/a gent", "wait", "--confine", "default"].map(str::to_owned)), "{all:?}");
        }
    }

    #[test]
    fn names_are_written_as_the_bus_has_them() {
        assert_eq!(label("tare-r-1.service"), "tare_2dr_2d1_2eservice");
        assert_eq!(label("1a"), "_31a");
    }

    #[test]
    fn what_systemd_made_of_it_is_read_value_by_value() {
        let values =
            [json!(42), json!("strict"), json!("read-only"), json!(true), json!(true), json!(true), json!(true)];
        assert_eq!(read_back(&values), Ok(Became { process: 42, protection: protection() }));
        let mut other = values.clone();
        other[4] = json!(false);
        assert!(read_back(&other).unwrap().protection.contains("PrivateTmp=no"));
        assert!(read_back(&values[..3]).unwrap().protection.contains("NoNewPrivileges=not known"));
        for none in [&[][..], &[json!(0)], &[json!("x")]] {
            assert!(read_back(none).is_err(), "{none:?}");
        }
    }

    #[test]
    fn a_note_of_another_run_is_refused() {
        let site = ReapSite { run_id: "r", state: Path::new("/run/tare/r"), agent: Path::new("/agent") };
        assert_eq!(Unit::new("r", "g1").check(&site), Ok(()));
        for wrong in
            [Unit::new("other", "g1"), Unit { run_id: "r".into(), name: "ssh".into() }, Unit::new("r", "x.service\n")]
        {
            assert!(wrong.check(&site).is_err(), "{wrong:?}");
        }
    }
}
