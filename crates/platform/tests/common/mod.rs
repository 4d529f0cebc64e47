//! What the tests of real platforms share.
//!
//! The agent's program is found through `TARE_AGENT`, or beside the tests in the target directory.

pub mod engines;
pub mod in_memory;
pub mod libvirtd;
pub mod loop_device;
pub mod sshd;
pub mod vcsim;

use std::os::unix::fs::{DirBuilderExt, PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::Value;
use tare_lab::{Lab, LabConfig, Ledger, LedgerError, Resource, StateDir};
use tare_platform::conformance::{self, Expect};
use tare_platform::{Guest, Platform, Site, registry};
use tare_wire::{ExecResult, ExecSpec, Reply, Request};

const NOBODY: u32 = 65_534;

/// So many guests come and go in a check, unless all variants are wanted: growth shows with few.
const CYCLES: u32 = 3;

static TURN: Mutex<()> = Mutex::new(());

/// One at a time: the checks count this process's descriptors, threads and children.
pub fn turn() -> MutexGuard<'static, ()> {
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Tells that a test is skipped and why, in the form that `cargo xtask test` counts.
pub fn skipped(reason: &str) {
    println!("SKIPPED: {reason}");
}

/// The calling test's name: the test harness names its thread so. A test gives it to this program, to run itself once more.
pub fn this_test() -> String {
    std::thread::current().name().unwrap().to_owned()
}

/// Whether the slow variants of what other tests cover are wanted, too: `make test-all`.
pub fn all_variants() -> bool {
    std::env::var_os("TARE_TEST_ALL").is_some()
}

/// As [`all_variants`]; tells that the test is skipped where they are not.
pub fn is_variant_wanted() -> bool {
    if !all_variants() {
        skipped("a slow variant: make test-all");
    }
    all_variants()
}

/// The agent's program; says that the test is skipped where there is none.
pub fn agent() -> Option<PathBuf> {
    let beside = || Some(std::env::current_exe().ok()?.ancestors().nth(2)?.join("tare-agent"));
    let found = std::env::var_os("TARE_AGENT").map(PathBuf::from).or_else(beside).filter(|path| path.exists());
    if found.is_none() {
        skipped("no agent: `cargo build -p tare-agent` first, or set TARE_AGENT");
    }
    found
}

/// The path of a small program of this host's, by its name.
pub fn program(name: &str) -> String {
    let place = ["/bin", "/usr/bin"].into_iter().find(|place| Path::new(place).join(name).exists());
    format!("{}/{name}", place.unwrap_or("/bin"))
}

/// A platform of the registry with these options.
pub fn platform(name: &str, options: &Value) -> Box<dyn Platform> {
    let entry = registry::find(name).unwrap();
    (entry.make)(&(entry.check_options)(options).unwrap()).unwrap()
}

/// A ledger that remembers: what was written down, and `None` for what was taken back.
#[derive(Default)]
pub struct Notes(Mutex<Vec<Option<Resource>>>);

impl Notes {
    /// What was written down, whatever became of it.
    pub fn count(&self) -> usize {
        self.0.lock().unwrap().len()
    }

    /// What was not taken back.
    pub fn left(&self) -> Vec<Resource> {
        self.0.lock().unwrap().iter().flatten().cloned().collect()
    }
}

impl Ledger for Notes {
    fn planned(&self, resource: &Resource) -> Result<u64, LedgerError> {
        let mut notes = self.0.lock().unwrap();
        notes.push(Some(resource.clone()));
        Ok(notes.len() as u64 - 1)
    }

    fn released(&self, id: u64) -> Result<(), LedgerError> {
        self.0.lock().unwrap()[usize::try_from(id).unwrap()] = None;
        Ok(())
    }
}

/// A lab and a state directory of a test's own, to start guests in.
pub struct Ground {
    pub run_id: String,
    pub agent: PathBuf,
    pub lab: Lab,
    pub state: StateDir,
    pub notes: Arc<Notes>,
    ledger: Arc<dyn Ledger>,
}

impl Ground {
    /// `None`, and the test is skipped, where a user may have no lab.
    pub fn new(label: &str, agent: PathBuf) -> Option<Self> {
        let run_id = format!("test-{}-{label}", std::process::id());
        let lab = match Lab::create(LabConfig::new(&run_id)) {
            Err(error) if tare_lab::is_rootless() => {
                skipped(&error.to_string());
                return None;
            }
            made => made.unwrap(),
        };
        let state = StateDir::create(&run_id, Path::new("/nonexistent")).unwrap();
        let notes = Arc::new(Notes::default());
        Some(Self { run_id, agent, lab, state, ledger: Arc::clone(&notes) as Arc<dyn Ledger>, notes })
    }

    /// Where its guests go.
    pub fn site(&self) -> Site<'_> {
        Site {
            run_id: &self.run_id,
            agent: &self.agent,
            lab: &self.lab,
            mtu: 1500,
            state: self.state.path(),
            ledger: &self.ledger,
            lifetime: Duration::from_secs(300),
            timeout: Duration::from_secs(120),
        }
    }
}

/// Runs a program in a guest; how it ended.
pub fn exec(guest: &dyn Guest, argv: &[&str]) -> ExecResult {
    executed(guest, ExecSpec::new(argv, Duration::from_secs(180), 65_536))
}

fn executed(guest: &dyn Guest, spec: ExecSpec) -> ExecResult {
    match guest.link().call(Request::Exec(spec), Duration::from_secs(200)) {
        Ok(Reply::Executed(result)) => result,
        other => panic!("{}: {other:?}; it said: {}", guest.spec().name, guest.diagnostics()),
    }
}

/// Runs a script as nobody in a guest, to its good end; what it printed.
pub fn as_nobody(guest: &dyn Guest, script: &str) -> String {
    let spec = ExecSpec::new(&["sh", "-c", script], Duration::from_secs(120), 16 << 10);
    let ran = executed(guest, ExecSpec { user: Some((NOBODY, NOBODY)), ..spec });
    let said = String::from_utf8_lossy(&[ran.stdout, ran.stderr].concat()).into_owned();
    assert_eq!(ran.code, Some(0), "{}: {said}", guest.spec().name);
    said
}

/// The newest PostgreSQL of this host's.
pub fn postgres() -> Option<PathBuf> {
    let installed = std::fs::read_dir("/usr/lib/postgresql").ok()?.flatten().map(|entry| entry.path().join("bin"));
    installed.filter(|programs| programs.join("initdb").exists() && programs.join("pgbench").exists()).max()
}

/// A gold copy with a cluster in it, empty without PostgreSQL's programs.
pub fn gold(place: &Path, programs: Option<&Path>) -> PathBuf {
    std::fs::set_permissions(place, std::fs::Permissions::from_mode(0o711)).unwrap();
    let gold = place.join("gold");
    std::fs::DirBuilder::new().mode(0o755).create(&gold).unwrap();
    let data = gold.join("data");
    std::fs::DirBuilder::new().mode(0o700).create(&data).unwrap();
    let _ = chown(&data, Some(NOBODY), Some(NOBODY));
    let Some(programs) = programs else { return gold };
    let mut initdb = Command::new(programs.join("initdb"));
    initdb.args(["--username=store", "--auth=trust", "--locale=C", "--encoding=UTF8", "-D"]).arg(&data);
    let made = initdb.current_dir("/").uid(NOBODY).gid(NOBODY).output().unwrap();
    assert!(made.status.success(), "{made:?}");
    gold
}

/// Starts the server on a guest's data as a study does, does some work with its programs, and ends it in order; what was printed.
pub fn serves(guest: &dyn Guest, programs: &Path, work: &str) -> String {
    let (path, programs) = (&guest.data().expect("it was given data").path, programs.display());
    as_nobody(
        guest,
        &format!(
            "exec 2>&1; export PATH={programs}:$PATH PGUSER=store PGHOST=127.0.0.1 PGDATABASE=postgres; cd {path} || exit; \
             pg_ctl -D data -w -t 90 -l data/log -o '-c listen_addresses=127.0.0.1 -c unix_socket_directories= \
             -c shared_buffers=64MB' start || {{ cat data/log; exit 1; }}; \
             {work} && pg_ctl -D data -w stop || {{ cat data/log; exit 1; }}"
        ),
    )
}

/// What a guest's root tries on the host's files through the share, mounted anew and for writing, and how each attempt
/// must end: the host refuses it. `run` runs a script in the guest and gives what it printed.
pub fn cannot_write_the_host(run: impl FnOnce(&str) -> String) {
    // Not below /tmp, which may be in memory and is then not shared.
    let place = tempfile::tempdir_in("/var/tmp").unwrap();
    let (there, at) = (place.path().join("there"), place.path().display());
    std::fs::write(&there, "the host's\n").unwrap();
    let attempts = [
        format!("echo x > $m{at}/new"),
        format!("echo x >> $m{at}/there"),
        format!("rm $m{at}/there"),
        format!("mv $m{at}/there $m{at}/moved"),
        format!("chmod 777 $m{at}/there"),
        format!("mkdir $m{at}/directory"),
    ];
    let tried: Vec<String> = attempts.iter().map(|attempt| format!("({attempt}) 2>&1")).collect();
    let said = run(&format!(
        "export LC_ALL=C; m=/tmp/again; mkdir $m; mount -t virtiofs root $m && mount -o remount,rw $m; \
         grep \" $m \" /proc/mounts; cat $m{at}/there; {}",
        tried.join("; ")
    ));
    let lines: Vec<&str> = said.lines().collect();
    assert!(lines[0].contains(" virtiofs rw"), "the guest itself still refuses, so nothing is shown: {said}");
    assert_eq!(lines[1], "the host's", "{said}");
    // The server has no right to make files for others, and the tree that it has cannot be written.
    let refusals = ["Read-only file system", "Operation not permitted"];
    let refused = lines[2..].iter().filter(|line| refusals.iter().any(|refusal| line.contains(refusal)));
    assert_eq!((refused.count(), lines.len()), (attempts.len(), attempts.len() + 2), "{said}");
    assert!(lines[2..].iter().any(|line| line.contains(refusals[0])), "{said}");
    assert_eq!(std::fs::read_to_string(&there).unwrap(), "the host's\n");
    assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 1);
}

/// The programs that the checks run, with the libraries they need, from this host; says that the test is skipped where they are
/// not here.
pub fn small_root(at: &Path) -> Option<()> {
    let made = copy_small_root(at);
    if made.is_none() {
        skipped("the programs for a small root file system are not here (`ldd /bin/sh` failed)");
    }
    made
}

fn copy_small_root(at: &Path) -> Option<()> {
    std::fs::create_dir_all(at.join("tmp")).ok()?;
    // The agent too, where it is one of the tests' own and not the static one.
    let agent = agent()?.to_string_lossy().into_owned();
    let tools =
        ["sh", "true", "sleep", "rm", "mkdir", "sync", "dd", "head", "cat", "ls", "stat", "readlink"].map(program);
    for program in tools.iter().chain([&agent]).map(String::as_str) {
        let listed = Command::new("ldd").arg(program).output().ok()?;
        let text = String::from_utf8(listed.stdout).ok()?;
        let libraries = text.split_whitespace().filter(|word| word.starts_with('/'));
        for file in libraries.chain([program]) {
            let inside = at.join(file.trim_start_matches('/'));
            std::fs::create_dir_all(inside.parent()?).ok()?;
            std::fs::copy(file, inside).ok()?;
        }
    }
    Some(())
}

/// That root as an archive beside it.
pub fn archive_of(root: &Path) -> PathBuf {
    let archive = root.with_extension("tar");
    let mut builder = tar::Builder::new(std::fs::File::create(&archive).unwrap());
    builder.append_dir_all(".", root).unwrap();
    builder.finish().unwrap();
    archive
}

/// Checks a platform. `label` is a word that no other check of this test program has.
pub fn conforms(label: &str, name: &str, options: &Value, expect: &Expect) {
    let _turn = turn();
    let Some(agent) = agent() else { return };
    let platform = platform(name, options);
    // A process that was started to be killed does nothing but what it was started for.
    let Some(run_id) = conformance::run_id(label) else { return };
    // Its lock keeps a tare that works on this host at the same time from reaping the run.
    let state = StateDir::create(&run_id, Path::new("/nonexistent")).unwrap();
    let most = if all_variants() { u32::MAX } else { CYCLES };
    let expect = Expect { cycles: expect.cycles.min(most), ..expect.clone() };
    let result = conformance::check(&*platform, &agent, &run_id, state.path(), &expect);
    state.remove().unwrap();
    match result {
        Err(conformance::Skipped(reason)) => skipped(&reason),
        Ok(result) => result.unwrap(),
    }
}
