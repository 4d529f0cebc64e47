//! How long several guests take that are started at once. `bench/start.sh` runs it beside the same by hand.
//!
//! `start_many boot` prints kernel and initial file system of machines, with a blank between.
//! `start_many PLATFORM COUNT [OPTIONS as JSON]` starts guests and prints the seconds until the last one's agent answered:
//! all of the starts, with what tare writes down. As root; the agent is that of `TARE_AGENT`.
#![allow(clippy::print_stdout)]

use std::error::Error;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tare_image::{Extras, Kernel, boot};
use tare_lab::{Lab, LabConfig, Ledger, NoLedger, StateDir};
use tare_model::guest::{GuestSize, GuestSpec};
use tare_model::{ByteSize, Refusal};
use tare_platform::{Guest, HostView, Platform, PlatformError, Site, registry};

type Outcome<T> = Result<T, Box<dyn Error>>;

/// As the guests by hand have it, see `bench/start.sh`.
const SIZE: GuestSize = GuestSize { cpus: 2, memory: ByteSize(512 << 20) };

fn main() -> Outcome<()> {
    let agent = std::env::var_os("TARE_AGENT").ok_or("say where the agent is: TARE_AGENT")?;
    let agent = PathBuf::from(agent).canonicalize()?;
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["boot"] => {
            let boot = boot(&Kernel::find(None)?, &agent, &Extras::default())?;
            println!("{} {}", boot.kernel.display(), boot.initrd.display());
            Ok(())
        }
        [platform, count] => start(platform, count.parse()?, "{}", &agent),
        [platform, count, options] => start(platform, count.parse()?, options, &agent),
        _ => Err("start_many boot | start_many PLATFORM COUNT [OPTIONS]".into()),
    }
}

fn start(name: &str, count: usize, options: &str, agent: &Path) -> Outcome<()> {
    let entry = registry::find(name).ok_or("no such platform")?;
    let platform = (entry.make)(&serde_json::from_str(options)?)?;
    if let Err(Refusal { reason, .. }) = platform.check(&HostView::here(agent)) {
        return Err(reason.into());
    }
    let run_id = format!("many-{}", std::process::id());
    let state = StateDir::create(&run_id, Path::new("/nonexistent"))?;
    let lab = Lab::create(LabConfig::new(run_id.clone()))?;
    let ledger: Arc<dyn Ledger> = Arc::new(NoLedger);
    let site = Site {
        run_id: &run_id,
        agent,
        lab: &lab,
        mtu: 1500,
        state: state.path(),
        ledger: &ledger,
        lifetime: Duration::from_secs(300),
        timeout: Duration::from_secs(120),
    };
    let began = Instant::now();
    let guests = all_at_once(&*platform, &site, count);
    let took_s = began.elapsed().as_secs_f64();
    for guest in guests {
        guest?.destroy()?;
    }
    drop(lab);
    let swept = tare_lab::reap(&run_id, &[], &mut |_, _| Ok(()));
    state.remove()?;
    if !swept.left.is_empty() {
        return Err(format!("left behind: {:?}", swept.left).into());
    }
    println!("{took_s:.4}");
    Ok(())
}

fn all_at_once(platform: &dyn Platform, site: &Site<'_>, count: usize) -> Vec<Result<Box<dyn Guest>, PlatformError>> {
    let one = |number: usize| {
        let spec = GuestSpec::new(format!("g{number}"), SIZE);
        platform.start(site, &spec)
    };
    std::thread::scope(|scope| {
        let starts: Vec<_> = (0..count).map(|number| scope.spawn(move || one(number))).collect();
        starts.into_iter().filter_map(|start| start.join().ok()).collect()
    })
}
