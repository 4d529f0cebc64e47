//! The one file of a release. scripts/dist.sh adds tare and its agent to this program as sections that the kernel does not load. It
//! unpacks them into tare's cache, under a name that tells their contents, and starts tare from there: the first start takes about a
//! second, each later one a few milliseconds.

mod packed;

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use packed::{Error, Packed};

fn main() -> ExitCode {
    let Err(error) = start();
    eprintln!("tare: {error}");
    ExitCode::FAILURE
}

/// Becomes tare.
fn start() -> Result<std::convert::Infallible, Error> {
    let packed = Packed::open(Path::new("/proc/self/exe"))?;
    let tare = packed.unpacked(&cache()?.join("program"))?;
    let why = Command::new(&tare).arg0("tare").args(std::env::args_os().skip(1)).exec();
    Err(Error::new(
        format!("start {}", tare.display()),
        why,
        "does that file system allow programs? Name a folder that does by TARE_CACHE",
    ))
}

/// Where tare keeps what it makes, as crates/image says.
fn cache() -> Result<PathBuf, Error> {
    let named = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    if let Some(named) = named("TARE_CACHE") {
        return Ok(named);
    }
    if rustix::process::geteuid().is_root() {
        return Ok(PathBuf::from("/var/cache/tare"));
    }
    let below = named("XDG_CACHE_HOME").or_else(|| Some(named("HOME")?.join(".cache")));
    let none = || {
        Error::new("unpack tare".to_owned(), "neither HOME nor XDG_CACHE_HOME is set", "name a folder by TARE_CACHE")
    };
    below.map(|below| below.join("tare")).ok_or_else(none)
}
