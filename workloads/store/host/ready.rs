//! A store that is ready to be driven: in a guest whose server tare starts, or on a server that exists.

use std::collections::BTreeMap;
use std::fs::File;
use std::time::{Duration, Instant};

use crate::store::spec::{StoreCount, StoreCounts, StoreLoad};
use tare_model::fact;
use tare_model::guest::DataPlace;
use tare_model::sql::{SqlRows, SqlServer};
use tare_model::trial::Flag;

use super::gold::{CREATE, KEPT, Kept, LOADED, NO_ORDER, agrees, counting, loading};
use super::parameters::Parameters;
use super::url::Url;
use crate::asked::{Asked, NOBODY, cell, failure};
use crate::gold::file;
use crate::postgres::cluster::{DATA, local, random};
use crate::postgres::installation::{self, Installation, OLDEST};
use crate::postgres::server::{CHECKPOINT, SETTINGS, SHORT, SUPERUSER, Server};
use crate::postgres::settings::{self, For};
use crate::postgres::{PORT, facts};
use crate::sql_refusal::refused;
use crate::{Failure, SetupSite, WorkSite, WorkloadError};

/// The user and the database of the store.
pub(super) const STORE: &str = "store";
/// Who may come in: whoever is in the guest, and the store's user with its password.
const HBA: &str = "# Written by tare for one trial.
host all all 127.0.0.1/32 trust
host store store 0.0.0.0/0 scram-sha-256
host store store ::/0 scram-sha-256
";

/// Where a guest that has none is given the programs.
const PROGRAMS: &str = "/opt/tare";
/// Where a guest keeps the store that nobody handed it.
const OWN_DATA: &str = "/var/lib/tare-store";
/// The schema on a server that exists.
const SCHEMA: &str = "tare_store";
/// How it is known to be tare's.
const MARK: &str = "made by tare for one trial; may be dropped at any time";
/// Connections of a guest that loads its own store.
const LOADERS: u32 = 2;

/// Fact: how long loading took, where it was part of the trial.
pub(super) const LOADED_IN: &str = "data loaded in";
/// Fact: how long the server took to start.
pub(super) const STARTED_IN: &str = "server started in";

/// A server with a loaded store that nobody has touched.
#[derive(Debug)]
pub(super) struct Ready {
    /// The server as the drivers reach it.
    pub clients: SqlServer,
    /// The server as it is asked about itself.
    pub own: SqlServer,
    /// Whether the guest's agent asks it; else the client's does.
    pub inside: bool,
    /// The server that was started; `None` where it exists by itself.
    pub started: Option<Server>,
    /// First number of its version.
    pub major: u32,
    /// What the store held before the first order.
    pub before: StoreCounts,
    /// What there is to tell of it.
    pub facts: BTreeMap<String, String>,
    /// What a reader must know.
    pub flags: Vec<Flag>,
}

/// The agent in the guest.
pub(super) const fn in_guest<'a>(site: &WorkSite<'a>) -> Asked<'a> {
    Asked { link: site.guest, side: "guest", timeout: site.timeout }
}

/// The agent of the first driver.
pub(super) const fn at_client<'a>(site: &WorkSite<'a>) -> Asked<'a> {
    Asked { link: site.client, side: "client", timeout: site.timeout }
}

impl Ready {
    /// The agent that asks the server about itself.
    pub fn asked<'a>(&self, site: &WorkSite<'a>) -> Asked<'a> {
        if self.inside { in_guest(site) } else { at_client(site) }
    }

    /// Version, settings and what they mean for safety.
    fn describe(&mut self, site: &WorkSite<'_>) -> Result<(), WorkloadError> {
        let rows = self.asked(site).sql("read the settings", &self.own, &["SELECT version()", SETTINGS], SHORT)?;
        facts::describe(&rows, &mut self.facts, &mut self.flags);
        Ok(())
    }

    /// Makes a checkpoint, as before every published run. If the user may not ask for one, the facts say so.
    fn checkpoint(&mut self, site: &WorkSite<'_>) -> Result<(), WorkloadError> {
        let began = Instant::now();
        let outcome = match self.asked(site).try_sql(&self.own, &["CHECKPOINT"], CHECKPOINT)? {
            Ok(_) => format!("{:.2} s", began.elapsed().as_secs_f64()),
            Err(failure) if failure.sqlstate.as_deref() == Some("42501") => "not made: the user may not".to_owned(),
            Err(failure) => return Err(refused("make a checkpoint", &self.own, &failure).into()),
        };
        self.facts.insert(facts::CHECKPOINT.to_owned(), outcome);
        Ok(())
    }

    /// Fills an empty store and counts what it then holds.
    fn load(&mut self, asked: Asked<'_>, parameters: &Parameters, server: &SqlServer) -> Result<(), WorkloadError> {
        let began = Instant::now();
        let (size, seed) = (parameters.size(), parameters.seed);
        let load = StoreLoad { server: server.clone(), size, seed, connections: LOADERS };
        asked.database(&load, &load.server, loading(parameters.db_size))?;
        self.facts.insert(LOADED_IN.to_owned(), format!("{:.2} s", began.elapsed().as_secs_f64()));
        self.before = count(asked, parameters, server, NO_ORDER, Vec::new())?;
        Ok(agrees(&size, &self.before)?)
    }
}

/// Counts a store.
pub(super) fn count(
    asked: Asked<'_>,
    parameters: &Parameters,
    server: &SqlServer,
    after_order: u64,
    in_doubt: Vec<u64>,
) -> Result<StoreCounts, WorkloadError> {
    let timeout_ns = u64::try_from(counting(parameters.db_size).as_nanos()).unwrap_or(u64::MAX);
    let count = StoreCount { server: server.clone(), after_order, in_doubt, timeout_ns };
    asked.database(&count, server, Duration::from_nanos(timeout_ns))
}

/// Starts a server in the guest on the data that it was given, or on data that are loaded there.
pub(super) fn start(
    site: &WorkSite<'_>,
    installation: &Installation,
    parameters: &Parameters,
) -> Result<Ready, WorkloadError> {
    let asked = in_guest(site);
    let (bin, shm) = programs(asked, installation)?;
    let path = site.data.map_or(OWN_DATA, |data| data.path.as_str());
    let server = Server { bin, data: format!("{path}/{DATA}") };
    let mut ready = Ready {
        clients: local(PORT, STORE, STORE),
        own: local(PORT, SUPERUSER, STORE),
        inside: true,
        started: Some(server.clone()),
        major: installation.major,
        before: StoreCounts::default(),
        facts: BTreeMap::new(),
        flags: Vec::new(),
    };
    match site.data {
        Some(data) => {
            ready.given(asked, data)?;
            data.log.as_ref().map_or(Ok(()), |log| server.log_apart(asked, &log.path))?;
        }
        None => {
            asked.script("make room for the data", MAKE_ROOM, &[path], None, SHORT)?;
            server.init(asked, installation.major)?;
        }
    }
    let clients = site.load.connections().saturating_mul(u32::try_from(site.drivers.len()).unwrap_or(1));
    let of = For { guest: site.size, db: parameters.db_size, clients, listen: site.guest_listen, shm };
    server.configure(asked, &settings::file(&settings::all(&parameters.settings, &of)), Some(HBA))?;
    let seconds = server.start(asked)?;
    ready.facts.insert(STARTED_IN.to_owned(), format!("{seconds:.2} s"));
    if site.data.is_none() {
        ready.fill(asked, parameters)?;
    }
    let password = random(16)?;
    let alter = format!("ALTER ROLE {STORE} PASSWORD '{password}'");
    asked.sql("set the store's password", &ready.own, &[&alter], SHORT)?;
    ready.clients.address.set_ip(site.guest_address);
    ready.clients.password = Some(password);
    ready.describe(site)?;
    ready.checkpoint(site)?;
    Ok(ready)
}

/// Makes a directory that nobody owns and everybody may pass.
const MAKE_ROOM: &str = r#"rm -rf "$1" && mkdir -p "$1" && chmod 755 "$1" && chown 65534:65534 "$1""#;

impl Ready {
    /// What the platform handed over, and what is in it.
    fn given(&mut self, asked: Asked<'_>, data: &DataPlace) -> Result<(), WorkloadError> {
        self.facts.extend(fact::of_data(data).into_iter().map(|(name, value)| (name.to_owned(), value)));
        let kept = asked.get(&format!("{}/{KEPT}", data.path))?;
        let kept: Kept = serde_json::from_slice(&kept).map_err(|error| {
            let remedy = "remove the gold copy (`tare image clear`), so that it is made anew";
            Failure::new(format!("read {KEPT} of the guest's data"), error.to_string(), remedy)
        })?;
        self.before = kept.counts;
        Ok(())
    }

    /// Loads the store in the guest itself, where the platform could hand none over.
    fn fill(&mut self, asked: Asked<'_>, parameters: &Parameters) -> Result<(), WorkloadError> {
        let detail = "the platform cannot hand data over, so the store was loaded in the guest itself before the trial: its \
                      pages and its caches are not those of a restored copy";
        self.flags.push(Flag { kind: "data-loaded-in-guest".to_owned(), detail: detail.to_owned() });
        self.facts.insert(fact::DATA_ON.to_owned(), format!("the guest's own root, {OWN_DATA}"));
        let postgres = SqlServer { database: "postgres".to_owned(), ..self.own.clone() };
        asked.sql("make the database", &postgres, &CREATE, SHORT)?;
        self.load(asked, parameters, &local(PORT, STORE, STORE))?;
        asked.sql("freeze the rows", &self.own, &[LOADED, "VACUUM (FREEZE, ANALYZE)"], loading(parameters.db_size))?;
        Ok(())
    }
}

/// What the shell prints of programs in `$1`, and whether nobody can share memory.
const PROBE: &str =
    r#""$1/postgres" --version && "$1/pg_ctl" --version >/dev/null && { test ! -w /dev/shm || echo shm; }"#;

/// Where the guest's programs are, and whether `/dev/shm` can be used. A guest that does not have those that were fetched is given them.
fn programs(asked: Asked<'_>, installation: &Installation) -> Result<(String, bool), WorkloadError> {
    let probe = |bin: &str| asked.run(&["sh", "-c", PROBE, "tare", bin], Some(NOBODY), SHORT);
    let here = installation.bin.to_string_lossy().into_owned();
    let mut ran = probe(&here)?;
    let mut bin = here;
    if let (false, Some(packed)) = (is_right(&ran.stdout, installation), &installation.packed) {
        bin = unpack(asked, packed, &installation.version)?;
        ran = probe(&bin)?;
    }
    if is_right(&ran.stdout, installation) {
        return Ok((bin, String::from_utf8_lossy(&ran.stdout).contains("shm")));
    }
    let tried = format!("run PostgreSQL {} in the guest from {bin}", installation.version);
    let remedy = "name a directory that the guest has, with the same version as this host's (postgres = \"...\"), or leave \
                  `postgres` out: then the guest is given the programs that `make platforms` fetched";
    Err(Failure::new(tried, failure(&ran), remedy).into())
}

/// Whether programs are of the version that the data were made with.
fn is_right(said: &[u8], installation: &Installation) -> bool {
    installation::version(&String::from_utf8_lossy(said)).is_some_and(|(_, major)| major == installation.major)
}

/// Gives the guest the programs; their directory there.
fn unpack(asked: Asked<'_>, packed: &std::path::Path, version: &str) -> Result<String, WorkloadError> {
    let place = format!("{PROGRAMS}/postgresql-{version}");
    let archive = format!("{place}.tar.gz");
    asked.script("make room for PostgreSQL", r#"mkdir -p "$1" && chmod 755 "$1" "${1%/*}""#, &[&place], None, SHORT)?;
    let mut from = File::open(packed).map_err(file("read", packed))?;
    asked.put_from(&archive, &mut from, SHORT)?;
    let script = r#"tar xzf "$1" -C "$2" && rm -f "$1""#;
    asked.script("unpack PostgreSQL in the guest", script, &[&archive, &place], None, SHORT)?;
    Ok(format!("{place}/bin"))
}

/// Sees before the first trial that a server that exists can be used.
pub(super) fn try_server(site: &SetupSite<'_>, url: &Url) -> Result<(), WorkloadError> {
    if url.is_guest() {
        return Ok(());
    }
    let asked = Asked { link: site.client, side: "client", timeout: site.timeout };
    let server = url.server(None, None)?;
    usable(asked, &server)?;
    if site.guests > 1 {
        let tried = format!("have {} guests use {server}", site.guests);
        let why = "it is one server, and each guest is to have its own";
        return Err(Failure::new(tried, why, "write {guest} as the host in `url`, or ask for one guest").into());
    }
    Ok(())
}

/// Sees that a server answers, is new enough, lets its user make a schema, and has none of that name but one of tare's own; the first
/// number of its version.
fn usable(asked: Asked<'_>, server: &SqlServer) -> Result<u32, WorkloadError> {
    let asking = [
        "SELECT current_setting('server_version_num')".to_owned(),
        "SELECT has_database_privilege(current_database(), 'CREATE'), pg_is_in_recovery()".to_owned(),
        format!("SELECT obj_description(oid, 'pg_namespace') FROM pg_namespace WHERE nspname = '{SCHEMA}'"),
    ];
    let asking: Vec<&str> = asking.iter().map(String::as_str).collect();
    let rows = asked.sql("use the database", server, &asking, SHORT)?;
    Ok(accepted(server, &rows)?)
}

/// What is said of a server by its answers: version, whether a schema may be made, and whose the schema is that is there.
fn accepted(server: &SqlServer, rows: &[SqlRows]) -> Result<u32, Failure> {
    let refuse = |why: String, remedy: &str| Err(Failure::new(format!("use the database {server}"), why, remedy));
    let [version, may, schema] = rows else {
        return refuse("it answered something else than it was asked".to_owned(), "name a server of PostgreSQL");
    };
    let number: u32 = cell(version).and_then(|number| number.parse().ok()).unwrap_or(0);
    let major = number / 10_000;
    if major < OLDEST {
        return refuse(format!("it is PostgreSQL {major}, older than {OLDEST}"), "use a newer server");
    }
    let answers: Vec<&str> = may.rows.iter().flatten().filter_map(Option::as_deref).collect();
    if answers != ["t", "f"] {
        let why = "the user may not make a schema in it, or it is a standby, which takes no writes";
        return refuse(why.to_owned(), "GRANT CREATE ON DATABASE to the user, on the primary");
    }
    if !schema.rows.is_empty() && cell(schema) != Some(MARK) {
        let why = format!("it has a schema {SCHEMA} already, which is not tare's");
        return refuse(why, "drop or rename that schema, or name another database");
    }
    Ok(major)
}

/// Makes the store on a server that exists.
pub(super) fn use_server(site: &WorkSite<'_>, url: &Url, parameters: &Parameters) -> Result<Ready, WorkloadError> {
    let asked = at_client(site);
    let plain = url.server(Some(site.guest_address), None)?;
    let major = usable(asked, &plain)?;
    let make = [
        // Left by a trial that did not come to its end.
        format!("DROP SCHEMA IF EXISTS {SCHEMA} CASCADE"),
        format!("CREATE SCHEMA {SCHEMA}"),
        format!("COMMENT ON SCHEMA {SCHEMA} IS '{MARK}'"),
    ];
    let make: Vec<&str> = make.iter().map(String::as_str).collect();
    asked.sql("make the schema", &plain, &make, loading(parameters.db_size))?;
    let clients = SqlServer { schema: Some(SCHEMA.to_owned()), ..plain.clone() };
    let mut ready = Ready {
        clients: clients.clone(),
        own: plain,
        inside: false,
        started: None,
        major,
        before: StoreCounts::default(),
        facts: BTreeMap::from([(fact::DATA_ON.to_owned(), format!("a server that exists, {url:?}"))]),
        flags: Vec::new(),
    };
    let filled = ready
        .load(asked, parameters, &clients)
        .and_then(|()| ready.describe(site))
        .and_then(|()| ready.checkpoint(site));
    if let Err(error) = filled {
        // Why it failed is what matters; what is left of the schema is dropped by the next trial if this fails too.
        let _ = leave_server(asked, &ready.own, parameters);
        return Err(error);
    }
    Ok(ready)
}

/// Takes away what [`use_server`] made.
pub(super) fn leave_server(asked: Asked<'_>, server: &SqlServer, parameters: &Parameters) -> Result<(), WorkloadError> {
    let drop = format!("DROP SCHEMA IF EXISTS {SCHEMA} CASCADE");
    asked.sql("drop the schema", server, &[&drop], loading(parameters.db_size)).map(std::mem::drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_cannot_be_used_is_refused_with_the_remedy() {
        let rows = |cells: &[&str]| {
            let row: Vec<_> = cells.iter().map(|&cell| Some(cell.to_owned())).collect();
            SqlRows { rows: if row.is_empty() { Vec::new() } else { vec![row] }, ..SqlRows::default() }
        };
        let server = local(5432, "u", "d");
        let said = |version: &str, may: &[&str], schema: &[&str]| {
            accepted(&server, &[rows(&[version]), rows(may), rows(schema)]).map_err(|error| error.to_string())
        };
        assert_eq!(said("150014", &["t", "f"], &[]), Ok(15));
        assert_eq!(said("120000", &["t", "f"], &[MARK]), Ok(12), "left by a trial that did not come to its end");
        for (version, may, schema, words) in [
            ("110022", ["t", "f"], vec![], ["PostgreSQL 11, older than 12", "newer server"]),
            ("90624", ["t", "f"], vec![], ["PostgreSQL 9, older than 12", "newer server"]),
            ("devel", ["t", "f"], vec![], ["older than 12", "newer server"]),
            ("150014", ["f", "f"], vec![], ["may not make a schema", "GRANT CREATE"]),
            ("150014", ["t", "t"], vec![], ["standby", "primary"]),
            ("150014", ["t", "f"], vec![""], ["schema tare_store already", "drop or rename"]),
        ] {
            let error = said(version, &may, &schema).unwrap_err();
            assert!(words.iter().all(|word| error.contains(word)), "{version} {may:?}: {error}");
            assert!(error.contains("postgres://u@127.0.0.1:5432/d"), "{error}");
        }
        assert!(accepted(&server, &[rows(&["150014"])]).unwrap_err().to_string().contains("something else"));
    }
}
