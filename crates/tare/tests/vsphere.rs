//! Studies with machines of vSphere, by the real program: against its simulator, and sshd in the place of what runs in them.

#[path = "../../platform/tests/common/vcsim.rs"]
mod vcsim;

use std::path::Path;

use crate::common::{expect_code, left_by_runs_into, query, ran, run, stderr, stdout, study_of, tare, write_study};
use crate::remote::sshd;
use crate::remote::{far_alone, in_toml, trials};
use serde_json::json;
use sshd::{PLAIN, Sshd};
use tare_model::sample::Source;
use tare_model::trial::Outcome;
use tare_record::RunFolder;
use tare_testkit::skipped;
use vcsim::{PASSWORD, apart};

const IDLE: &str = "[cases.idle]\nworkload = \"rr\"\n";

/// An arm of the machine behind the sshd, which vSphere calls by this name.
fn arm(sshd: &Sshd, vm: &str, more: &str) -> String {
    let more = format!(", vsphere = {{ vm = \"{vm}\", snapshot = \"clean\" }}{more}");
    format!("[arms.far]\nplatform = \"ssh\"\noptions = {}\n", in_toml(&sshd.options(PLAIN), &more))
}

/// Files below a folder that have this in them.
fn holding(folder: &Path, what: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(holding(&path, what));
        } else if std::fs::read(&path).unwrap().windows(what.len()).any(|part| part == what.as_bytes()) {
            found.push(path.display().to_string());
        }
    }
    found
}

#[test]
fn a_study_runs_on_a_machine_of_vsphere() {
    apart(skipped, PASSWORD, |sshd, vcsim| {
        let folder = tempfile::tempdir().unwrap();
        let clean = vcsim.make_snapshot("web-1", "clean");
        vcsim.make_snapshot("web-1", "later");
        let text = far_alone(&arm(sshd, "web-1", ""), "500ms", IDLE).replace("blocks = 1", "blocks = 2");
        let study = write_study(folder.path(), &text);
        let study = study.to_str().unwrap();
        // Without anybody to ask: planning runs nothing.
        let planned = tare().args(["plan", study]).env("GOVC_URL", "http://127.0.0.1:1/sdk").output().unwrap();
        expect_code(&planned, 0);
        let examined = stdout(&run(&["doctor", "--verbose", study]));
        assert!(
            examined.contains("`govc 0.") && examined.contains("there answers VMware vCenter Server"),
            "{examined}"
        );
        assert!(!vcsim.is_on("web-1"));

        let (out, output) = ran(folder.path(), &text);
        expect_code(&output, 0);
        let trials = trials(&out);
        assert_eq!(trials.len(), 2, "{}", stderr(&output));
        for trial in &trials {
            assert!(matches!(trial.outcome, Outcome::Completed(_)), "{:?}", trial.outcome);
            let ready = trial
                .samples
                .iter()
                .find(|sample| sample.source == Source::Hypervisor && sample.series == "vm1_cpu_ready_percent");
            assert!(ready.is_some_and(|sample| sample.value >= 0.0), "{:?}", trial.facts);
            assert!(trial.facts["host metrics"].contains("by vSphere's performance counters"), "{:?}", trial.facts);
            assert!(trial.flags.iter().all(|flag| flag.kind != "host-metrics"), "{:?}", trial.flags);
            // The simulator's machine has 32 MiB, and the study asks for 256.
            let memory = trial.parity.iter().find(|row| row.resource == "memory, by its hypervisor").unwrap();
            assert_eq!((memory.granted.as_deref(), memory.equal), (Some("32MiB"), false));
        }
        assert!(!vcsim.is_on("web-1"));
        assert_eq!(vcsim.current_snapshot("web-1"), clean);
        assert_eq!(left_by_runs_into(&out), Vec::<String>::new());
        let sources = query::<String>(&out, "SELECT DISTINCT source FROM samples");
        assert!(sources.iter().any(|source| source == "hypervisor"), "{sources:?}");
        let machines = RunFolder::open(&out).unwrap().environment().machines.clone();
        let titles: Vec<&str> = machines[0].sections.iter().map(|section| section.title.as_str()).collect();
        assert!(titles.contains(&"Hypervisor"), "{titles:?}");
        let report = std::fs::read_to_string(out.join("report.md")).unwrap();
        assert!(report.contains("VMware ESXi") && report.contains("vSphere reverts it to a snapshot"), "{report}");
        assert_eq!(holding(folder.path(), PASSWORD), Vec::<String>::new());
    });
}

#[test]
fn a_machine_that_vsphere_does_not_have_ends_the_run_before_it_begins() {
    apart(skipped, PASSWORD, |sshd, vcsim| {
        let folder = tempfile::tempdir().unwrap();
        vcsim.make_snapshot("web-1", "clean");
        let (_, refused) = ran(folder.path(), &far_alone(&arm(sshd, "web-9", ""), "500ms", IDLE));
        assert_ne!(refused.status.code(), Some(0));
        assert!(stderr(&refused).contains("no virtual machine"), "{}", stderr(&refused));
        assert_eq!(holding(folder.path(), PASSWORD), Vec::<String>::new());
    });
}

#[test]
fn commands_beside_vsphere_and_logins_are_refused_at_their_lines() {
    let options = |more: &str| format!("{{ host = \"web1\", {more} }}");
    let refused = |more: &str, words: &[&str]| {
        let folder = tempfile::tempdir().unwrap();
        let arm = format!("[arms.far]\nplatform = \"ssh\"\noptions = {}\n", options(more));
        let study = write_study(folder.path(), &study_of("baseline = \"far\"\nblocks = 1", &arm, "256MiB", &[], IDLE));
        let planned = run(&["plan", study.to_str().unwrap()]);
        expect_code(&planned, 2);
        for word in words {
            assert!(stderr(&planned).contains(word), "{word}: {}", stderr(&planned));
        }
        assert!(!stderr(&planned).contains("hunter2"), "{}", stderr(&planned));
    };
    let vsphere = "vsphere = { vm = \"web-1\", snapshot = \"clean\" }";
    for field in ["restore", "start", "stop"] {
        let leave = format!("leave `{field}` out, or `vsphere`");
        refused(&format!("{vsphere}, {field} = [\"true\"]"), &["study.toml:", field, &leave]);
    }
    refused(
        &format!("{vsphere}, host-metrics = {{ command = {} }}", json!(["esxtop"])),
        &["study.toml:", "leave `host-metrics` out"],
    );
    let url = "vsphere = { vm = \"web-1\", snapshot = \"clean\", url = \"https://me:hunter2@vc1/sdk\" }";
    refused(url, &["study.toml:", "do not belong into a study", "GOVC_PASSWORD"]);
    let password = "vsphere = { vm = \"web-1\", snapshot = \"clean\", password = \"hunter2\" }";
    refused(password, &["study.toml:", "GOVC_PASSWORD"]);
}
