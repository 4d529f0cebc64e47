//! How long guests take to be ready, against the same by hand: `container` against `unshare` with the same
//! overlay, `oci` against the bare runtime. A guest's start counts from its link and control group on, so by hand
//! these are made and counted too: the link on both, the control group where the runtime does not make its own.
//! Rounds are interleaved; medians and ratios are printed.
//!
//! `cargo run --release -p tare-platform --example start_time [ROUNDS] [RUNTIME]`, as root. The agent is the static one of
//! `TARE_AGENT`, or that of the target directory.
#![allow(clippy::print_stdout)]

use std::error::Error;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::json;
use tare_lab::{Cgroup, Lab, LabConfig, Ledger, Limits, NoLedger, Port};
use tare_model::ByteSize;
use tare_model::guest::{GuestSize, GuestSpec};
use tare_platform::{Site, registry};

type Outcome<T> = Result<T, Box<dyn Error>>;

fn main() -> Outcome<()> {
    let mut arguments = std::env::args().skip(1);
    let rounds: usize = arguments.next().map_or(Ok(21), |text| text.parse())?;
    let runtime = arguments.next().unwrap_or_else(|| "runc".into());
    let agent = std::env::var_os("TARE_AGENT").map_or_else(|| "target/release/tare-agent".into(), PathBuf::from);
    if !agent.exists() {
        return Err(format!("there is no agent at {}: build it, or set TARE_AGENT", agent.display()).into());
    }
    let run_id = format!("start-{}", std::process::id());
    let state = std::env::temp_dir().join(&run_id);
    std::fs::create_dir_all(&state)?;
    let lab = Lab::create(LabConfig::new(run_id.clone()))?;
    let ledger: Arc<dyn Ledger> = Arc::new(NoLedger);
    let site = Site {
        run_id: &run_id,
        agent: &agent,
        lab: &lab,
        mtu: 1500,
        state: &state,
        ledger: &ledger,
        lifetime: Duration::from_secs(60),
        timeout: Duration::from_secs(20),
    };
    let names = ["unshare by hand", "container", "runtime by hand", "oci"];
    let mut times: [Vec<f64>; 4] = Default::default();
    for _ in 0..rounds {
        times[0].push(with_link(&site, true, |port| {
            Ok(port.netns.run(|| unshare_by_hand().map_err(|error| error.to_string()))??)
        })?);
        times[1].push(ours(&site, "container", &json!({}))?);
        times[2].push(with_link(&site, false, |port| {
            let bundle = hand_made_bundle(&state, &runtime, &port.netns.path())?;
            runtime_by_hand(&bundle, &state, &runtime)
        })?);
        times[3].push(ours(&site, "oci", &json!({"runtime": runtime}))?);
    }
    let medians = times.map(median);
    println!("{rounds} rounds, interleaved; milliseconds, medians");
    for (name, value) in names.iter().zip(medians) {
        println!("{name:16} {:8.2}", value * 1e3);
    }
    println!("container / unshare by hand: {:.2} (goal: at most 1.5)", medians[1] / medians[0]);
    println!("oci / {runtime} by hand:      {:.2} (goal: at most 1.2)", medians[3] / medians[2]);
    let swept = tare_lab::reap(&run_id, &[], &mut |_, _| Ok(()));
    std::fs::remove_dir_all(&state)?;
    if swept.left.is_empty() { Ok(()) } else { Err(format!("left behind: {:?}", swept.left).into()) }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// The time of `work`, with that of a link and, if so wanted, of a control group with limits added.
fn with_link(site: &Site<'_>, group: bool, work: impl FnOnce(&Port) -> Outcome<f64>) -> Outcome<f64> {
    let began = Instant::now();
    let port = site.lab.attach("hand")?;
    let limits = Limits { cpu_quota_cpus: Some(2), memory_bytes: Some(512 << 20), ..Limits::default() };
    let mut group = if group { Some(Cgroup::create(Cgroup::plan(site.run_id, "hand")?, &limits)?) } else { None };
    let made_s = began.elapsed().as_secs_f64();
    let work_s = work(&port);
    group.as_mut().map_or(Ok(()), Cgroup::remove)?;
    port.detach()?;
    Ok(made_s + work_s?)
}

fn ours(site: &Site<'_>, platform: &str, options: &serde_json::Value) -> Outcome<f64> {
    let entry = registry::find(platform).ok_or("no such platform")?;
    let platform = (entry.make)(options)?;
    let size = GuestSize { cpus: 2, memory: ByteSize(512 << 20) };
    let mut guest = platform.start(site, &GuestSpec::new("guest", size))?;
    let time = guest.start_time_s();
    guest.destroy()?;
    Ok(time)
}

/// From the start of the command to the first line that it prints.
fn first_line(command: &mut Command) -> Outcome<f64> {
    let began = Instant::now();
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?;
    let mut line = String::new();
    BufReader::new(child.stdout.take().ok_or("no output")?).read_line(&mut line)?;
    let time = began.elapsed().as_secs_f64();
    let status = child.wait()?;
    if line.trim() != "ready" || !status.success() {
        return Err(format!("by hand it printed `{}` and ended with {status}", line.trim()).into());
    }
    Ok(time)
}

/// What a person would write: an overlay on a tmpfs, `/proc`, `/sys` and `/dev`, then chroot. The program inside
/// is the smallest that tells that it is there.
fn unshare_by_hand() -> Outcome<f64> {
    let script = "mount -t tmpfs t /tmp && mkdir /tmp/u /tmp/w /tmp/m && \
        mount -t overlay o -o lowerdir=/,upperdir=/tmp/u,workdir=/tmp/w /tmp/m && mount -t proc p /tmp/m/proc && \
        mount -t sysfs -o ro s /tmp/m/sys && mount --rbind /dev /tmp/m/dev && exec chroot /tmp/m /bin/echo ready";
    first_line(Command::new("unshare").args(["-m", "-u", "-i", "-p", "-f", "--kill-child", "sh", "-c", script]))
}

/// A bundle like ours, over the same kind of overlay, with `/bin/echo` in it.
fn hand_made_bundle(state: &Path, runtime: &str, netns: &Path) -> Outcome<PathBuf> {
    let bundle = state.join("by-hand");
    std::fs::create_dir_all(bundle.join("rootfs"))?;
    let path = bundle.join("config.json");
    // That of the round before; a runtime writes over none.
    if path.exists() {
        std::fs::remove_file(&path)?;
    }
    if !Command::new(runtime).arg("spec").current_dir(&bundle).status()?.success() {
        return Err(format!("`{runtime} spec` failed").into());
    }
    let mut config: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(&path)?)?;
    config["process"]["terminal"] = json!(false);
    config["process"]["args"] = json!(["/bin/echo", "ready"]);
    for namespace in
        config["linux"]["namespaces"].as_array_mut().into_iter().flatten().filter(|n| n["type"] == "network")
    {
        namespace["path"] = json!(netns);
    }
    config["root"]["readonly"] = json!(false);
    std::fs::write(&path, config.to_string())?;
    Ok(bundle)
}

fn runtime_by_hand(bundle: &Path, state: &Path, runtime: &str) -> Outcome<f64> {
    // The overlay is mounted beforehand and not counted: the bare runtime is handed a root.
    let rootfs = bundle.join("rootfs");
    let layers = state.join("layers");
    let script = format!(
        "mount -t tmpfs t {l} && mkdir {l}/u {l}/w && mount -t overlay o -o lowerdir=/,upperdir={l}/u,workdir={l}/w {r} && \
         (umount /sys/fs/cgroup/unified 2>/dev/null; true) && echo mounted && read go && exec {runtime} --root {s}/runtime run --bundle {b} by-hand",
        l = layers.display(),
        r = rootfs.display(),
        s = state.display(),
        b = bundle.display(),
    );
    std::fs::create_dir_all(&layers)?;
    let mut child = Command::new("unshare")
        .args(["-m", "--propagation", "private", "sh", "-c", &script])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let mut out = BufReader::new(child.stdout.take().ok_or("no output")?);
    let mut line = String::new();
    out.read_line(&mut line)?;
    let began = Instant::now();
    std::io::Write::write_all(&mut child.stdin.take().ok_or("no input")?, b"go\n")?;
    line.clear();
    out.read_line(&mut line)?;
    let time = began.elapsed().as_secs_f64();
    let status = child.wait()?;
    if line.trim() != "ready" || !status.success() {
        return Err(format!("the runtime by hand printed `{}` and ended with {status}", line.trim()).into());
    }
    Ok(time)
}
