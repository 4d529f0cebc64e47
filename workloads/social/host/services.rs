//! What the instances use beside the guest: PostgreSQL with a database for each of them, and the file store.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

use crate::social::spec::{Added, StoreSpec};
use tare_model::guest::DataPlace;
use tare_model::packed::Packed;
use tare_model::sql::SqlServer;
use tare_model::trial::Flag;
use tare_wire::{Reply, Request, ServeReport};

use super::gold::{KEPT, Kept, SOCIAL};
use super::parameters::Parameters;
use crate::asked::Asked;
use crate::postgres::cluster::{DATA, local};
use crate::postgres::facts;
use crate::postgres::installation::Installation;
use crate::postgres::server::{CHECKPOINT, SETTINGS};
use crate::postgres::server::{SHORT, SUPERUSER, Server};
use crate::postgres::settings;
use crate::site::stop_server;
use crate::{Failure, ServicesSite, WorkSite, WorkloadError};

/// Facts: what the database lies on, how long it took to restore it and how, and how long its server took to start.
pub(super) const DATABASE_ON: &str = "database on";
pub(super) const DATABASE_RESTORED_IN: &str = "database restored in";
pub(super) const DATABASE_STARTED_IN: &str = "database started in";
/// Where PostgreSQL listens, in a network of its own.
const PORT: u16 = 5432;
/// Connections beside those of the instances: tare's own, and those that PostgreSQL reserves.
const OTHER_CONNECTIONS: u32 = 10;
/// Longest that one more database may take.
const COPYING: Duration = Duration::from_secs(600);
/// From this version on it is said how a database is copied; before, files were.
const SAYS_HOW: u32 = 15;
/// Shared buffers, bytes: at least, and at most.
const BUFFERS: (u64, u64) = (128 << 20, 1 << 30);
/// In the data's directory: what users bring.
const FILES: &str = "files";
const MIB: u64 = 1 << 20;

/// What is at work beside the guest.
#[derive(Debug)]
pub(super) struct Beside {
    /// PostgreSQL, once it was started.
    server: Option<Server>,
    /// Number of the file store, for the agent.
    store: Option<u64>,
    /// Where the file store listens.
    pub files: SocketAddr,
    /// Where the database listens, as the guest sees it.
    pub database: SocketAddr,
    /// Directory of all its data, which goes with the run.
    pub place: String,
    /// In it, what users have uploaded.
    pub folder: String,
    /// What each database held at first.
    pub loaded: Added,
    /// What there is to tell.
    pub facts: BTreeMap<String, String>,
    /// What a reader must know.
    pub flags: Vec<Flag>,
}

/// The services of a guest.
///
/// # Errors
/// Where there are none.
pub(super) fn of<'a>(site: &WorkSite<'a>) -> Result<ServicesSite<'a>, Failure> {
    site.services.ok_or_else(|| {
        let why = "the guest is not on the lab's network, where its database and file store would be";
        let remedy = "choose platforms whose guests are on this host's lab network";
        Failure::new("start what the social application uses", why, remedy)
    })
}

/// The agent of the services.
pub(super) const fn asked<'a>(services: &ServicesSite<'a>, timeout: Duration) -> Asked<'a> {
    Asked { link: services.link, side: "services", timeout }
}

/// The database of an instance, from 1, as its superuser reaches it from beside it.
pub(super) fn own(instance: u32) -> SqlServer {
    local(PORT, SUPERUSER, &database(instance))
}

/// Name of an instance's database.
pub(super) fn database(instance: u32) -> String {
    format!("{SOCIAL}{instance}")
}

/// Starts PostgreSQL on a copy of the gold copy, makes a database for each instance, and starts the file store.
///
/// # Errors
/// When there is no copy, or one of them does not come to work. What was started is ended then.
pub(super) fn start(
    site: &WorkSite<'_>,
    installation: &Installation,
    parameters: &Parameters,
) -> Result<Beside, WorkloadError> {
    let services = of(site)?;
    let Some(data) = services.data else {
        let why = "what is beside the guest was given no data";
        let remedy = "report this: it is a defect of tare";
        return Err(Failure::new("start what the social application uses", why, remedy).into());
    };
    let mut beside = Beside {
        server: None,
        store: None,
        files: SocketAddr::new(services.address, 0),
        database: SocketAddr::new(services.address, PORT),
        place: data.path.clone(),
        folder: format!("{}/{FILES}", data.path),
        loaded: Added::default(),
        facts: BTreeMap::new(),
        flags: Vec::new(),
    };
    match beside.all(site, &services, data, installation, parameters) {
        Ok(()) => Ok(beside),
        Err(error) => {
            beside.end(site);
            Err(error)
        }
    }
}

impl Beside {
    fn all(
        &mut self,
        site: &WorkSite<'_>,
        services: &ServicesSite<'_>,
        data: &DataPlace,
        installation: &Installation,
        parameters: &Parameters,
    ) -> Result<(), WorkloadError> {
        let asked = asked(services, site.timeout);
        let kept = kept(asked, data)?;
        self.loaded = kept.loaded;
        self.fact(DATABASE_ON, data.storage.clone());
        let restored = format!("{:.2} s, {}", data.restore_s, data.restored_by);
        self.fact(DATABASE_RESTORED_IN, restored);
        let bin = installation.bin.to_string_lossy().into_owned();
        let server = Server { bin, data: format!("{}/{DATA}", data.path) };
        let settings = settings_of(parameters, &kept, site.instances, services.address);
        server.configure(asked, &settings::file(&settings), Some(&rules(site.guest_address)))?;
        let seconds = server.start(asked)?;
        self.server = Some(server);
        self.fact(DATABASE_STARTED_IN, format!("{seconds:.2} s"));
        self.databases(asked, site.instances, installation.major)?;
        self.describe(asked)?;
        self.serve_files(services, site, &kept, parameters)
    }

    fn fact(&mut self, name: &str, value: impl Into<String>) {
        self.facts.insert(name.to_owned(), value.into());
    }

    /// Makes each instance's database of the one that was loaded.
    fn databases(&mut self, asked: Asked<'_>, instances: u32, major: u32) -> Result<(), WorkloadError> {
        let how = if major >= SAYS_HOW { " STRATEGY FILE_COPY" } else { "" };
        let postgres = local(PORT, SUPERUSER, "postgres");
        let began = Instant::now();
        for instance in 1..=instances {
            let name = database(instance);
            // There is one where somebody else has begun on the same data.
            let drop = format!("DROP DATABASE IF EXISTS {name}");
            let make = format!("CREATE DATABASE {name} TEMPLATE {SOCIAL} OWNER {SOCIAL}{how}");
            asked.sql(&format!("make the database {name}"), &postgres, &[&drop, &make], COPYING)?;
        }
        let made = began.elapsed().as_secs_f64();
        self.fact("databases made in", format!("{made:.2} s, {instances} of them"));
        let began = Instant::now();
        asked.sql("make a checkpoint", &postgres, &["CHECKPOINT"], CHECKPOINT)?;
        self.fact(facts::CHECKPOINT, format!("{:.2} s", began.elapsed().as_secs_f64()));
        Ok(())
    }

    /// Version, settings and what they mean for safety.
    fn describe(&mut self, asked: Asked<'_>) -> Result<(), WorkloadError> {
        let rows = asked.sql("read the settings", &own(1), &["SELECT version()", SETTINGS], SHORT)?;
        facts::describe(&rows, &mut self.facts, &mut self.flags);
        Ok(())
    }

    /// Starts the file store on an empty directory beside the database.
    fn serve_files(
        &mut self,
        services: &ServicesSite<'_>,
        site: &WorkSite<'_>,
        kept: &Kept,
        parameters: &Parameters,
    ) -> Result<(), WorkloadError> {
        let asked = asked(services, site.timeout);
        let make = r#"rm -rf "$1" && mkdir "$1" && chmod 755 "$1""#;
        asked.script("make a directory for what users bring", make, &[&self.folder], None, SHORT)?;
        let spec = StoreSpec {
            scale: kept.scale,
            instances: site.instances,
            folder: self.folder.clone(),
            delay_ns: parameters.file_delay.ns,
        };
        // As the database does.
        let from = Some(site.guest_address);
        let request = Request::Serve { task: Packed::of(&spec)?, bind: services.address, from };
        match services.link.call(request, site.timeout) {
            Ok(Reply::Serving { server, address }) => {
                self.store = Some(server);
                self.files.set_port(address.port());
                Ok(())
            }
            Ok(_) => Err(WorkSite::unexpected("services", "start a server")),
            Err(source) => Err(WorkloadError::Agent { side: "services", source }),
        }
    }

    /// Stops the file store; what it saw.
    ///
    /// # Errors
    /// When its agent does not.
    pub fn stop_files(&mut self, site: &WorkSite<'_>) -> Result<Option<ServeReport>, WorkloadError> {
        let (services, Some(server)) = (of(site)?, self.store.take()) else { return Ok(None) };
        stop_server(services.link, "services", server, site.timeout).map(Some)
    }

    /// Ends everything after an error, which is what matters: what cannot be ended goes with the agent and its group.
    pub fn end(&mut self, site: &WorkSite<'_>) {
        let _ = self.stop_files(site);
        if let (Ok(services), Some(server)) = (of(site), self.server.take()) {
            let _ = server.kill(asked(&services, site.timeout));
        }
    }
}

/// What was counted in the gold copy.
fn kept(asked: Asked<'_>, data: &DataPlace) -> Result<Kept, WorkloadError> {
    let kept = asked.get(&format!("{}/{KEPT}", data.path))?;
    serde_json::from_slice(&kept).map_err(|error| {
        let remedy = "remove the gold copy (`tare image clear`), so that it is made anew";
        Failure::new(format!("read {KEPT} of the social database"), error.to_string(), remedy).into()
    })
}

/// Who may come in: whoever is beside the server, and the application from its guest. Its users are known by their address, as the guest is in a
/// network that nobody else is in.
fn rules(guest: IpAddr) -> String {
    let bits = if guest.is_ipv4() { 32 } else { 128 };
    format!(
        "# Written by tare for one trial.\nhost all all 127.0.0.1/32 trust\nhost all {SOCIAL} {guest}/{bits} trust\n"
    )
}

/// All settings that the server is started with: for many connections and small databases, all that makes commits safe as it is.
fn settings_of(parameters: &Parameters, kept: &Kept, instances: u32, listen: IpAddr) -> BTreeMap<String, String> {
    let buffers = kept.scale.table_bytes().saturating_mul(instances.into()) / 2;
    let connections = instances.saturating_mul(parameters.pool).saturating_add(OTHER_CONNECTIONS);
    let own = [
        ("shared_buffers", format!("{}MB", buffers.clamp(BUFFERS.0, BUFFERS.1) / MIB)),
        ("max_wal_size", "2GB".to_owned()),
        ("checkpoint_timeout", "1h".to_owned()),
        ("fsync", "on".to_owned()),
        ("full_page_writes", "on".to_owned()),
        ("synchronous_commit", "on".to_owned()),
        ("huge_pages", "off".to_owned()),
        ("jit", "off".to_owned()),
        ("log_checkpoints", "on".to_owned()),
        ("timezone", "UTC".to_owned()),
        ("log_timezone", "UTC".to_owned()),
    ];
    let mut settings: BTreeMap<String, String> =
        own.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    settings.extend(parameters.settings.iter().map(|(name, value)| (name.clone(), value.0.clone())));
    let listen = if listen.is_loopback() { "127.0.0.1".to_owned() } else { format!("127.0.0.1,{listen}") };
    let ours = [
        ("listen_addresses", listen),
        ("port", PORT.to_string()),
        // Paths of sockets are short, and those of data may be long.
        ("unix_socket_directories", String::new()),
        ("max_connections", connections.to_string()),
    ];
    settings.extend(ours.map(|(name, value)| (name.to_owned(), value)));
    settings
}

/// How many files users have uploaded, counted where they lie.
///
/// # Errors
/// When they cannot be counted.
pub(super) fn files_kept(site: &WorkSite<'_>, folder: &str, instance: u32) -> Result<u64, WorkloadError> {
    let asked = asked(&of(site)?, site.timeout);
    let script = r#"test ! -d "$1" || find "$1" -type f \( -name '*.jpg' -o -name '*.pdf' \) | wc -l"#;
    let printed =
        asked.script("count what users have uploaded", script, &[&format!("{folder}/{instance}")], None, COPYING)?;
    if printed.is_empty() {
        return Ok(0);
    }
    printed.trim().parse().map_err(|_| {
        let why = format!("the shell says `{printed}`");
        Failure::new("count what users have uploaded", why, "report this: it is a defect of tare").into()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::postgres::settings::SettingValue;
    use crate::social::spec::Scale;

    #[test]
    fn settings_are_for_all_instances_and_the_studys_go_over_them() {
        let kept = Kept { loaded: Added::default(), scale: Scale::of(200) };
        let mut parameters = Parameters::default();
        let listen = "198.18.0.9".parse().unwrap();
        let settings = settings_of(&parameters, &kept, 20, listen);
        assert_eq!((settings["max_connections"].as_str(), settings["fsync"].as_str()), ("1010", "on"));
        assert_eq!((settings["shared_buffers"].as_str(), settings["port"].as_str()), ("1024MB", "5432"));
        assert_eq!(settings["listen_addresses"], "127.0.0.1,198.18.0.9");
        parameters.settings.insert("fsync".into(), SettingValue("off".into()));
        parameters.settings.insert("shared_buffers".into(), SettingValue("64MB".into()));
        let settings = settings_of(&parameters, &kept, 1, listen);
        assert_eq!((settings["fsync"].as_str(), settings["shared_buffers"].as_str()), ("off", "64MB"));
    }

    #[test]
    fn only_the_guest_comes_in_and_only_as_the_application() {
        let rules = rules("198.18.0.2".parse().unwrap());
        assert!(rules.contains("host all social 198.18.0.2/32 trust"), "{rules}");
        assert!(!rules.contains("0.0.0.0"), "{rules}");
    }
}
