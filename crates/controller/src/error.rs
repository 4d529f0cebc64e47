//! What can end a run.

use std::path::PathBuf;

use tare_model::Refusal;
use tare_model::field::FieldError;
use tare_model::plan::CpuPlacement;
use tare_model::units::ByteSize;

/// An error that ends a run. What was acknowledged before it stays in the run folder.
#[derive(Debug, thiserror::Error)]
pub enum ControllerError {
    /// The lab could not be made.
    #[error("the lab could not be made: {0}")]
    Lab(#[from] tare_lab::LabError),
    /// The run folder could not be written or read.
    #[error("{0}")]
    Record(#[from] tare_record::RecordError),
    /// A platform or workload of the plan cannot be made.
    #[error("{what}: {source}")]
    Registry {
        /// The arm or case.
        what: String,
        /// What is wrong.
        source: FieldError,
    },
    /// Machines beside this host cannot be used.
    #[error("{}", each_host(.refused))]
    NoHosts {
        /// Their ids, and why each cannot, in the order of the study. Never empty.
        refused: Vec<(String, Refusal)>,
    },
    /// A workload of the plan cannot be used on this host.
    #[error("case `{case}`: this host does not meet a requirement of `{workload}`: {reason}\nremedy: {remedy}")]
    Unusable {
        /// The case.
        case: String,
        /// The workload.
        workload: String,
        /// The unmet requirement.
        reason: String,
        /// What would help.
        remedy: String,
    },
    /// What a case's trials need could not be made ready; no trial was started.
    #[error("case `{case}`: before its first trial: {reason}")]
    Setup {
        /// The case.
        case: String,
        /// What was tried, why it failed and the remedy.
        reason: String,
    },
    /// The load of a case could not be found by trying; no trial was started.
    #[error("case `{case}`: the load that each guest is to be offered could not be found: {reason}")]
    Calibration {
        /// The case.
        case: String,
        /// What was tried, why it failed and the remedy.
        reason: String,
    },
    /// The host has no memory for one guest.
    #[error(
        "case `{case}`: not even one guest fits: it takes {} at once, {} are available and {} of them are kept in reserve. End other programs, or ask for a smaller `guest` or `reserve`",
        ByteSize(*needed), ByteSize(*available), ByteSize(*reserve)
    )]
    NoRoom {
        /// The case.
        case: String,
        /// What one guest takes at once, bytes.
        needed: u64,
        /// What is available, bytes.
        available: u64,
        /// What is kept, bytes.
        reserve: u64,
    },
    /// The host's memory could not be looked at.
    #[error("the memory of this host cannot be read: {reason}")]
    Host {
        /// What was tried and why it failed.
        reason: String,
    },
    /// A platform of the plan is not usable on this host.
    #[error("arm `{arm}`: this host cannot run it: {reason}\nremedy: {remedy}")]
    Unavailable {
        /// The arm.
        arm: String,
        /// Why.
        reason: String,
        /// What would help.
        remedy: String,
    },
    /// A dead run left something that cannot be taken away.
    #[error(
        "the dead run {run} left something that cannot be taken away: {left}. A run on a host that is not clean would measure that too; take it away by hand, then run again"
    )]
    DeadRun {
        /// The dead run.
        run: String,
        /// What is left, in words.
        left: String,
    },
    /// Another run is alive on this host.
    #[error(
        "run {run} is alive on this host (process {pid}): two runs would measure one another. Wait for it, stop it, or say --alongside, and every trial will say so"
    )]
    AnotherRun {
        /// The other run.
        run: String,
        /// Its controller's process.
        pid: String,
    },
    /// A run to be forgotten that is not there, or whose controller lives.
    #[error("there is no dead run {run} on this host: `tare reap` lists those that left something")]
    NoDeadRun {
        /// As it was named.
        run: String,
    },
    /// Somebody else has changed settings of the host that this study changes.
    #[error(
        "{run} (process {pid}) has changed settings of this host's memory that this study changes, too: each would put back what the other had set. Wait for it, or stop it; --alongside does not help"
    )]
    Governed {
        /// The other run, or `tare ksm tune`.
        run: String,
        /// Its process.
        pid: String,
    },
    /// A run to resume that was placed on other CPUs.
    #[error("the run was begun with the driver on CPUs {:?} and guests on {:?}, and would go on with {:?} and {:?}: its blocks could not be compared. Give this process the CPUs it had then", theirs.client, theirs.guests, ours.client, ours.guests)]
    OtherCpus {
        /// Placement in the folder.
        theirs: Box<CpuPlacement>,
        /// Placement now.
        ours: Box<CpuPlacement>,
    },
    /// What a trial made is still there.
    #[error(
        "after trial {trial} the host was not clean: {left}\nno further trial was started; what was left has been reaped; go on with --resume"
    )]
    NotClean {
        /// The trial.
        trial: u32,
        /// What is left, in words.
        left: String,
    },
    /// The run is over and something of it is still there.
    #[error(
        "the run is over and its figures stand, but something it made could not be taken away: {left}. Run `tare reap`"
    )]
    LeftBehind {
        /// What is left, in words.
        left: String,
    },
    /// The process that would take the run down if this one were killed.
    #[error("the reaper of the run could not be started: {source}. It is this program once more: is it still there?")]
    Reaper {
        /// Why.
        source: std::io::Error,
    },
    /// The agent's program is not there.
    #[error("there is no agent at {path}: build it with `make build`, or name it with TARE_AGENT")]
    NoAgent {
        /// Where it was looked for.
        path: PathBuf,
    },
    /// A folder to resume that belongs to another plan.
    #[error(
        "{path} holds a run of another plan (its hash is {theirs:.12}, this study's on this host is {ours:.12}): resume it with the study file and options it was begun with"
    )]
    OtherPlan {
        /// The folder.
        path: PathBuf,
        /// Hash in the folder.
        theirs: String,
        /// Hash now.
        ours: String,
    },
    /// The folder's study differed in what the folder does not show.
    #[error(
        "{path} was begun with another study: it names other machines or users, or holds other secrets or values of `env`. \
         Resume it with the study as it was, or start a new run; what may change belongs in `{{ from-env = ... }}` or `{{ from-file = ... }}`"
    )]
    OtherStudy {
        /// The folder.
        path: PathBuf,
    },
}

/// What is wrong with each host, and what would help.
fn each_host(refused: &[(String, Refusal)]) -> String {
    let of =
        |(host, Refusal { reason, remedy }): &(String, Refusal)| format!("host `{host}`: {reason}\nremedy: {remedy}");
    refused.iter().map(of).collect::<Vec<_>>().join("\n")
}
