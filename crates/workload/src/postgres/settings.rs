//! PostgreSQL's settings: the published ones, sized for the guest, and those of the study over them.

use std::collections::BTreeMap;
use std::net::IpAddr;

use serde::{Deserialize, Deserializer, Serialize};
use tare_model::ByteSize;
use tare_model::field::FieldError;
use tare_model::flag;
use tare_model::guest::GuestSize;
use tare_model::trial::Flag;

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;
/// Bytes of a page in every build that is distributed.
const PAGE: u64 = 8 << 10;
/// Connections beside those of the drivers: who counts, who watches, and those that the server keeps for superusers.
const OTHER_CONNECTIONS: u32 = 5;

/// The published servers had 4 GB of shared buffers in guests of 10 GB, ...
const SHARED_BUFFERS_PERCENT: u64 = 40;
/// ... and were configured to expect 8 GB of cache.
const CACHE_PERCENT: u64 = 80;
/// Published: `checkpoint_segments = 1024`, which by PostgreSQL's own rule is a `max_wal_size` of 3 x 1024 x 16 MB = 48 GB,
/// beside databases of 4 GB: twelve times as much. Smaller databases get as many times their size, ...
const WAL_PER_DATA: u64 = 12;
/// ... but never so little that filling it would be part of a short trial, ...
const WAL_LEAST: u64 = 2 * GIB;
/// ... and none gets more than was published.
const WAL_MOST: u64 = 48 * GIB;

/// Settings that tare sets itself, because it must know them.
const OURS: [&str; 16] = [
    "listen_addresses",
    "port",
    "unix_socket_directories",
    "data_directory",
    "config_file",
    "hba_file",
    "ident_file",
    "external_pid_file",
    "password_encryption",
    "ssl",
    "logging_collector",
    "default_transaction_read_only",
    "include",
    "include_dir",
    "include_if_exists",
    "restart_after_crash",
];

/// Settings without which a commit that was acknowledged may be lost.
const SAFETY: [&str; 3] = ["fsync", "full_page_writes", "synchronous_commit"];

/// The value of a setting, as PostgreSQL takes it. In a study it may be a text, a number or a truth.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct SettingValue(pub String);

impl<'de> Deserialize<'de> for SettingValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match serde_json::Value::deserialize(deserializer)? {
            serde_json::Value::String(text) => Ok(Self(text)),
            serde_json::Value::Number(number) => Ok(Self(number.to_string())),
            serde_json::Value::Bool(on) => Ok(Self(if on { "on" } else { "off" }.to_owned())),
            _ => Err(serde::de::Error::custom("a setting is a text, a number, or true or false")),
        }
    }
}

/// Whether a study may set this.
pub(crate) fn check(name: &str, value: &str) -> Result<(), FieldError> {
    let fit = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_' || c == '.';
    if name.is_empty() || !name.chars().all(fit) || name.starts_with(|c: char| c.is_ascii_digit()) {
        return Err(FieldError::new(&[], "this is no name of a PostgreSQL setting")
            .help("names are of lower case letters, digits and _, such as shared_buffers"));
    }
    if OURS.contains(&name) || name.starts_with("ssl_") {
        return Err(FieldError::new(&[], "tare sets this itself").help("leave it out"));
    }
    if value.contains(['\n', '\r', '\0']) {
        return Err(FieldError::new(&[], "the value of a setting is one line"));
    }
    if name == "max_wal_size" && bytes(value).is_none() {
        return Err(FieldError::new(&[], format!("`{value}` is no size that PostgreSQL takes"))
            .help("write a number and its unit: MB, GB or TB (of 1024)"));
    }
    Ok(())
}

/// Most WAL that is kept before a checkpoint is forced, bytes: what a database of that size is given, or what the study says.
pub(crate) fn wal_bytes(given: &BTreeMap<String, SettingValue>, db: ByteSize) -> u64 {
    let said = given.get("max_wal_size").and_then(|value| bytes(&value.0));
    said.unwrap_or_else(|| db.0.saturating_mul(WAL_PER_DATA).clamp(WAL_LEAST, WAL_MOST))
}

/// What of the study's settings cannot be in guests of this size, with so many clients of each driver.
///
/// # Errors
/// The setting, with the figures.
pub(crate) fn fit(given: &BTreeMap<String, SettingValue>, guest: &GuestSize, clients: u32) -> Result<(), FieldError> {
    // A number alone counts pages.
    let buffers = given.get("shared_buffers").and_then(|value| sized(&value.0, PAGE));
    if let Some(buffers) = buffers.filter(|buffers| *buffers >= guest.memory.0) {
        let why = format!("{} of shared buffers do not fit into guests of {}", ByteSize(buffers), guest.memory);
        return Err(FieldError::new(&["shared_buffers"], why)
            .help("write less, leave it out (40 % of the guest's memory), or ask for larger guests"));
    }
    let connections = given.get("max_connections").and_then(|value| value.0.trim().parse::<u32>().ok());
    let need = clients.saturating_add(OTHER_CONNECTIONS);
    if let Some(connections) = connections.filter(|connections| *connections < need) {
        let why = format!(
            "{connections} connections are too few: a driver has {clients}, tare and the server's own take more"
        );
        return Err(FieldError::new(&["max_connections"], why)
            .help(format!("write at least {need} for each driver of a guest, or leave it out")));
    }
    Ok(())
}

/// A size as PostgreSQL writes it, bytes. Without a unit `max_wal_size` is in MB.
fn bytes(text: &str) -> Option<u64> {
    sized(text, MIB)
}

/// The same, where a number alone counts so many bytes.
fn sized(text: &str, alone: u64) -> Option<u64> {
    let text = text.trim();
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let unit = match text[digits..].trim() {
        "" => alone,
        "B" => 1,
        "kB" => 1 << 10,
        "MB" => MIB,
        "GB" => GIB,
        "TB" => 1 << 40,
        _ => return None,
    };
    text[..digits].parse::<u64>().ok()?.checked_mul(unit)
}

/// What decides the settings.
#[derive(Debug, Clone, Copy)]
pub(crate) struct For {
    /// Size of the guest.
    pub guest: GuestSize,
    /// Size of the database as the study says it.
    pub db: ByteSize,
    /// Connections of all drivers.
    pub clients: u32,
    /// Address that the server listens on, beside 127.0.0.1.
    pub listen: IpAddr,
    /// Whether programs in the guest can share memory by `/dev/shm`.
    pub shm: bool,
}

/// All settings that the server is started with, the study's over the defaults.
pub(crate) fn all(given: &BTreeMap<String, SettingValue>, of: &For) -> BTreeMap<String, String> {
    let megabytes = |percent: u64| format!("{}MB", (of.guest.memory.0.saturating_mul(percent) / 100 / MIB).max(1));
    let mut settings: BTreeMap<String, String> = [
        ("shared_buffers", megabytes(SHARED_BUFFERS_PERCENT)),
        ("effective_cache_size", megabytes(CACHE_PERCENT)),
        ("max_wal_size", format!("{}MB", wal_bytes(&BTreeMap::new(), of.db) / MIB)),
        ("checkpoint_timeout", "1h".to_owned()),
        ("fsync", "on".to_owned()),
        ("full_page_writes", "on".to_owned()),
        ("synchronous_commit", "on".to_owned()),
        ("max_connections", (of.clients + 20).max(100).to_string()),
        // The published kernels gave none, and a host that has some would favour the arms that see them.
        ("huge_pages", "off".to_owned()),
        ("dynamic_shared_memory_type", if of.shm { "posix" } else { "mmap" }.to_owned()),
        ("log_checkpoints", "on".to_owned()),
        ("timezone", "UTC".to_owned()),
        ("log_timezone", "UTC".to_owned()),
    ]
    .into_iter()
    .map(|(name, value)| (name.to_owned(), value))
    .collect();
    settings.extend(given.iter().map(|(name, value)| (name.clone(), value.0.clone())));
    let listen = match of.listen {
        address if address.is_unspecified() => "*".to_owned(),
        address if address.is_loopback() => "127.0.0.1".to_owned(),
        address => format!("127.0.0.1,{address}"),
    };
    let ours = [
        ("listen_addresses", listen),
        ("port", super::PORT.to_string()),
        // Paths of sockets are short, and those of data may be long.
        ("unix_socket_directories", String::new()),
        ("password_encryption", "scram-sha-256".to_owned()),
    ];
    settings.extend(ours.map(|(name, value)| (name.to_owned(), value)));
    settings
}

/// The settings as a file of PostgreSQL's.
pub(crate) fn file(settings: &BTreeMap<String, String>) -> String {
    let mut text = String::from("# Written by tare for one trial.\n");
    for (name, value) in settings {
        let quoted = value.replace('\\', "\\\\").replace('\'', "''");
        text += &format!("{name} = '{quoted}'\n");
    }
    text
}

/// A flag for each setting of a running server without which what was acknowledged may be lost.
pub(crate) fn unsafe_flags(running: &[(String, String)]) -> Vec<Flag> {
    let off = running.iter().filter(|(name, value)| SAFETY.contains(&name.as_str()) && value == "off");
    off.map(|(name, _)| Flag {
        kind: flag::UNSAFE.to_owned(),
        detail: format!(
            "{name} is off: orders that were acknowledged may be lost when the server, its guest or the host fails"
        ),
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn published() -> For {
        let guest = GuestSize { cpus: 4, memory: ByteSize(10 * GIB) };
        For { guest, db: ByteSize(4_000_000_000), clients: 40, listen: "10.0.0.2".parse().unwrap(), shm: true }
    }

    #[test]
    fn a_guest_of_the_published_size_gets_the_published_settings() {
        let settings = all(&BTreeMap::new(), &published());
        assert_eq!(settings["shared_buffers"], "4096MB");
        assert_eq!(settings["effective_cache_size"], "8192MB");
        let wal = bytes(&settings["max_wal_size"]).unwrap() as f64;
        assert!((wal / (48.0 * GIB as f64) - 1.0).abs() < 0.1, "3 x 1024 segments of 16 MB: {wal}");
        assert_eq!((settings["checkpoint_timeout"].as_str(), settings["fsync"].as_str()), ("1h", "on"));
        assert_eq!(settings["listen_addresses"], "127.0.0.1,10.0.0.2");
    }

    #[test]
    fn what_the_study_says_goes_over_the_defaults_and_under_what_tare_must_know() {
        let given = BTreeMap::from([
            ("shared_buffers".to_owned(), SettingValue("1GB".into())),
            ("port".to_owned(), SettingValue("1".into())),
            ("max_wal_size".to_owned(), SettingValue("3 GB".into())),
        ]);
        let settings = all(&given, &For { shm: false, clients: 400, ..published() });
        assert_eq!((settings["shared_buffers"].as_str(), settings["port"].as_str()), ("1GB", "5432"));
        assert_eq!(
            (settings["dynamic_shared_memory_type"].as_str(), settings["max_connections"].as_str()),
            ("mmap", "420")
        );
        assert_eq!(wal_bytes(&given, ByteSize(4_000_000_000)), 3 * GIB);
        assert_eq!(wal_bytes(&BTreeMap::new(), ByteSize(10_000_000)), 2 * GIB);
    }

    #[test]
    fn settings_that_no_guest_of_that_size_can_have_are_refused_with_the_figures() {
        let guest = GuestSize { cpus: 1, memory: ByteSize(512 * MIB) };
        let with = |name: &str, value: &str| {
            let given = BTreeMap::from([(name.to_owned(), SettingValue(value.to_owned()))]);
            fit(&given, &guest, 20)
        };
        // 65,536 pages of 8 KiB.
        for (name, value, word) in [
            ("shared_buffers", "512MB", "512MiB"),
            ("shared_buffers", "4 GB", "4GiB"),
            ("shared_buffers", "65536", "512MiB"),
            ("max_connections", "24", "at least 25"),
        ] {
            let error = with(name, value).unwrap_err();
            assert_eq!(error.path, [name]);
            let message = format!("{} {}", error.message, error.help.unwrap_or_default());
            assert!(message.contains(word), "{value}: {message}");
        }
        for (name, value) in
            [("shared_buffers", "511MB"), ("shared_buffers", "65535"), ("max_connections", "25"), ("work_mem", "1GB")]
        {
            assert!(with(name, value).is_ok(), "{name} {value}");
        }
    }

    #[test]
    fn the_file_quotes_what_it_must() {
        let settings = BTreeMap::from([("search_path".to_owned(), r"it's a\b".to_owned())]);
        assert!(file(&settings).ends_with("search_path = 'it''s a\\\\b'\n"), "{}", file(&settings));
    }

    #[test]
    fn what_makes_commits_unsafe_is_flagged_and_nothing_else() {
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let safe = [pair("fsync", "on"), pair("synchronous_commit", "local"), pair("jit", "off")];
        assert!(unsafe_flags(&safe).is_empty());
        for name in SAFETY {
            let flags = unsafe_flags(&[pair(name, "off"), pair("jit", "off")]);
            assert_eq!((flags.len(), flags[0].kind.as_str()), (1, "unsafe"));
            assert!(flags[0].detail.contains(name));
        }
    }

    #[test]
    fn a_size_of_wal_that_is_none_is_refused() {
        assert!(check("max_wal_size", "lots").is_err() && check("max_wal_size", "16GB").is_ok());
        assert!(check("ssl_cert_file", "x").is_err() && check("work_mem", "a\nport = 1").is_err());
    }
}
