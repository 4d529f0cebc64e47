//! No secret of a study, and no name of a machine, is in what a run leaves behind or prints.

use crate::common;

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Output;

use crate::common::{is_root, run, stderr, stdout, tare};

/// A study with canaries in every place that holds a secret or names a machine.
struct Planted {
    study: PathBuf,
    /// Secrets: nobody may read them.
    secrets: Vec<String>,
    /// Names of machines and people: whoever starts the run may read them on the terminal.
    names: Vec<String>,
    /// Variables for tare.
    variables: Vec<(String, String)>,
}

#[expect(clippy::too_many_lines, reason = "every place of a secret, one after another")]
fn planted(folder: &Path) -> Planted {
    let mut secrets = Vec::new();
    let mut secret = |what: &str| {
        secrets.push(format!("cnry-{what}-{}", secrets.len()));
        secrets.last().unwrap().clone()
    };
    let (mut env, mut variables) = (String::new(), Vec::new());
    for n in 0..20 {
        // The same text is written in several ways.
        let value = secret("given").replacen('-', if n % 2 == 0 { "-" } else { "\\u002d" }, 1);
        let _ = write!(env, "GIVEN{n} = \"{value}\", ");
    }
    for n in 0..5 {
        let file = folder.join(format!("file{n}"));
        std::fs::write(&file, format!("{}\n", secret("file"))).unwrap();
        let _ = write!(env, "FILE{n} = {{ from-file = \"{}\" }}, ", file.display());
        variables.push((format!("TARE_TEST_CANARY{n}"), secret("variable")));
        let _ = write!(env, "VAR{n} = {{ from-env = \"TARE_TEST_CANARY{n}\" }}, ");
    }
    let url_file = folder.join("url");
    std::fs::write(&url_file, format!("postgres://u:{}@{{guest}}:5432/db", secret("urlfile"))).unwrap();
    let echo = "for v in $(env | sed -n 's/^[GFV][IA].*=//p'); do echo \"echoed: $v\" >&2; done";
    let study = format!(
        r#"
# A comment repeats {given}.
schema = 1
name = "some"
question = "Is {given} shown?"
baseline = "native"
blocks = 1
noise-floor = false
skip-unavailable = true
[arms.native]
platform = "native"
label = "native for {given}"
[arms.container]
platform = "container"
[arms.far]
platform = "ssh"
[arms.far.options]
host = "cnryhost-a.invalid"
user = "cnryuser-b"
identity = "/home/cnryhome-c/id"
config = "/home/cnryhome-d/config"
port = 40022
[guest]
cpus = 1
memory = "128MiB"
[phases]
steady-state = "100ms"
[cases.prints]
workload = "exec"
[cases.prints.parameters]
command = ["sh", "-c", "{fails}; exit 3"]
env = {{ {env} }}
[cases.argument]
workload = "exec"
[cases.argument.parameters]
command = ["sh", "-c", "echo $0 $@ >&2; exit 3", "--password={argument}", "--token={token}"]
[cases.store]
workload = "store"
[cases.store.parameters]
url = "postgres://cnryuser-e:{password}@{{guest}}:5432/db"
[cases.store-encoded]
workload = "store"
[cases.store-encoded.parameters]
url = "postgres://u:{encoded}%21@{{guest}}:5432/db"
[cases.store-file]
workload = "store"
[cases.store-file.parameters]
url = {{ from-file = "{url_file}" }}
"#,
        given = "cnry-given-0",
        fails = echo.replace('\\', "\\\\").replace('"', "\\\""),
        env = env.trim_end_matches(", "),
        argument = secret("argument"),
        token = secret("token"),
        password = secret("password"),
        encoded = secret("encoded"),
        url_file = url_file.display(),
    );
    let path = folder.join("study.toml");
    std::fs::write(&path, study).unwrap();
    let names = ["cnryhost-a", "cnryuser-b", "cnryhome-c", "cnryhome-d", "cnryuser-e", "40022"];
    Planted { study: path, secrets, names: names.map(str::to_owned).to_vec(), variables }
}

impl Planted {
    fn tare(&self, arguments: &[&str]) -> Output {
        tare().args(arguments).envs(self.variables.iter().cloned()).output().unwrap()
    }
}

/// Every file below a folder, as bytes.
fn files(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() { all.extend(files(&path)) } else { all.push((path.clone(), std::fs::read(&path).unwrap())) }
    }
    all
}

fn holds(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|window| window == text.as_bytes())
}

#[test]
fn what_a_run_leaves_behind_holds_no_secret_and_no_name() {
    if !is_root() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let planted = planted(folder.path());
    assert!(planted.secrets.len() + planted.names.len() >= 40);
    let study = planted.study.to_str().unwrap();
    for (out, flag) in [("redacted", None), ("named", Some("--no-redact"))] {
        let out = folder.path().join(out);
        let mut arguments = vec!["run", study, "--out", out.to_str().unwrap()];
        arguments.extend(flag);
        let ended = planted.tare(&arguments);
        let printed = [ended.stdout.clone(), ended.stderr.clone()].concat();
        let left = files(&out);
        let read = |name: &str| left.iter().find(|(path, _)| path.ends_with(name)).map(|(_, bytes)| bytes.clone());
        // The trials failed with what their commands printed: so there was something to take out.
        let report = String::from_utf8(read("report.md").unwrap()).unwrap();
        assert!(report.contains("echoed: ") && report.contains("redacted"), "{}{report}", stderr(&ended));
        for secret in &planted.secrets {
            assert!(!holds(&printed, secret), "{secret} was printed: {}{}", stdout(&ended), stderr(&ended));
        }
        let names = if flag.is_none() { planted.names.as_slice() } else { &[] };
        for (path, bytes) in &left {
            for text in planted.secrets.iter().chain(names) {
                assert!(!holds(bytes, text), "{text} is in {}", path.display());
            }
        }
    }
    // The same study goes on with the same folder.
    let out = folder.path().join("redacted");
    let resumed = planted.tare(&["run", study, "--resume", "--out", out.to_str().unwrap()]);
    assert!(!stderr(&resumed).contains("another plan"), "{}", stderr(&resumed));
    assert_eq!(resumed.status.code(), Some(3), "{}", stderr(&resumed));
    // One that differs in what the folder does not show is another study, where the host has a key to know it by.
    if !Path::new("/etc/machine-id").exists() {
        return tare_testkit::skipped("needs /etc/machine-id");
    }
    let changed = folder.path().join("changed.toml");
    let text = std::fs::read_to_string(&planted.study).unwrap();
    std::fs::write(&changed, text.replace("cnry-password-", "another-one-")).unwrap();
    let refused = planted.tare(&["run", changed.to_str().unwrap(), "--resume", "--out", out.to_str().unwrap()]);
    assert_eq!(refused.status.code(), Some(2), "{}", stderr(&refused));
    assert!(stderr(&refused).contains("begun with another study"), "{}", stderr(&refused));
}

#[test]
fn a_plan_shows_no_secret_and_reads_none() {
    let folder = tempfile::tempdir().unwrap();
    let planted = planted(folder.path());
    let study = planted.study.to_str().unwrap();
    for arguments in [&["plan", study, "--format", "json"][..], &["plan", study]] {
        let shown = planted.tare(arguments);
        assert!(stdout(&shown).contains("some"), "{}", stderr(&shown));
        for secret in &planted.secrets {
            let printed = [shown.stdout.clone(), shown.stderr.clone()].concat();
            assert!(!holds(&printed, secret), "{secret}: {}{}", stdout(&shown), stderr(&shown));
        }
    }
    // The hash is of what is shown: another secret makes no other plan, another command does.
    let hash = |text: &str| {
        let file = folder.path().join("changed.toml");
        std::fs::write(&file, text).unwrap();
        let shown = stdout(&planted.tare(&["plan", file.to_str().unwrap(), "--format", "json"]));
        serde_json::from_str::<serde_json::Value>(&shown).unwrap()["hash"].as_str().unwrap().to_owned()
    };
    let text = std::fs::read_to_string(&planted.study).unwrap();
    assert_eq!(hash(&text), hash(&text.replace("cnry-password-", "another-one-")));
    assert_ne!(hash(&text), hash(&text.replace("exit 3", "exit 4")));
}

#[test]
fn a_secret_that_is_not_found_is_reported_by_line_and_field_and_errors_show_none() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("study.toml");
    let refused = |case: &str| {
        std::fs::write(&file, common::small_study(1, "") + case).unwrap();
        let refused = run(&["plan", file.to_str().unwrap()]);
        assert_eq!(refused.status.code(), Some(2), "{}", stdout(&refused));
        stderr(&refused)
    };
    let said = refused(
        "[cases.e]\nworkload = \"exec\"\n[cases.e.parameters]\ncommand = [\"x\"]\nenv = { A = { from-env = \"TARE_NO_SUCH\" } }\n",
    );
    assert!(said.contains("`TARE_NO_SUCH` is not set") && said.contains("env.A.from-env"), "{said}");
    let said =
        refused("[cases.e]\nworkload = \"store\"\n[cases.e.parameters]\nurl = { from-file = \"/no/such/file\" }\n");
    assert!(said.contains("/no/such/file") && said.contains("url.from-file"), "{said}");
    for wrong in [
        "[cases.e]\nworkload = \"exec\"\n[cases.e.parameters]\ncommand = []\nenv = { A = \"cnry-1\", B = 7 }\n",
        "[cases.e]\nworkload = \"store\"\n[cases.e.parameters]\nurl = \"postgres://u:cnry-2@h\"\n",
        "[cases.e]\nworkload = \"store\"\n[cases.e.parameters]\nurl = \"postgres://u:cnry-3@h/db\" x\n",
        "[cases.e]\nworkload = \"exec\"\n[cases.e.parameters.env]\nA = [\"cnry-4\"\n",
    ] {
        let said = refused(wrong);
        assert!(!said.contains("cnry-"), "{said}");
    }
}
