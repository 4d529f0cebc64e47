//! What is known of particular runtimes: how to get them, and which of their programs are none.

use std::path::Path;

use tare_model::Refusal;

use super::gvisor::is_gvisor;

/// How a runtime that is not here is had.
pub(super) fn remedy(name: &str) -> String {
    let short = Path::new(name).file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let how = match short.as_str() {
        "runc" | "crun" => format!("Install it: on Debian and Ubuntu, `apt-get install {short}`"),
        "youki" => "Install it: its releases are on github.com/youki-dev/youki, or `cargo install youki`".into(),
        _ if is_gvisor(Path::new(name)) => "Build it with `make platforms`, or install it as gvisor.dev says".into(),
        _ if is_kata(Path::new(name)) => KATA.into(),
        _ => "Install it".into(),
    };
    format!("{how}; or name another by `runtime = \"...\"`, such as a path to {short}")
}

/// Kata's own programs of version 2 and later are no OCI runtimes.
const KATA: &str = "Since version 2 this runtime has no OCI command line: it is a shim that containerd or CRI-O start. \
                    Only `kata-runtime` of version 1 (no longer maintained) can be named here; to measure a virtual \
                    machine, use a platform that is one";

/// Why a program that is there and runs cannot be used, and the remedy; `None` when nothing is known against it.
pub(super) fn objection(program: &Path, version: &str) -> Option<Refusal> {
    if !is_kata(program) {
        return None;
    }
    let shim = program.file_name().is_some_and(|name| name.to_string_lossy().starts_with("containerd-shim"));
    // It prints `kata-runtime  : 3.2.0`.
    let major = version.rsplit(':').next().and_then(|number| number.trim().split('.').next()?.parse::<u32>().ok());
    if !shim && major == Some(1) {
        return None;
    }
    let reason = format!("`{}` ({version}) is no OCI runtime", program.display());
    Some(Refusal::new(reason, KATA))
}

fn is_kata(program: &Path) -> bool {
    program.file_name().is_some_and(|name| {
        let name = name.to_string_lossy();
        name.starts_with("kata") || name.starts_with("containerd-shim-kata")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shim_is_not_taken_for_a_runtime() {
        let object = |program: &str, version: &str| objection(Path::new(program), version);
        for (program, version) in [
            ("/usr/bin/kata-runtime", "kata-runtime  : 3.2.0"),
            ("/usr/bin/kata-runtime", "something else"),
            ("/usr/bin/containerd-shim-kata-v2", "Kata Containers containerd shim: version 1.0.0"),
        ] {
            let Refusal { reason, remedy } = object(program, version).unwrap();
            assert!(reason.contains(program) && remedy.contains("shim"), "{reason} {remedy}");
        }
        assert_eq!(object("/usr/bin/kata-runtime", "kata-runtime  : 1.13.0"), None);
        assert_eq!(object("/usr/bin/youki", "youki version 0.5.4"), None);
    }

    #[test]
    fn what_is_not_here_has_a_remedy() {
        for (name, word) in [
            ("runc", "apt-get install runc"),
            ("/opt/youki", "cargo install youki"),
            ("runsc", "make platforms"),
            ("kata-runtime", "no OCI command line"),
            ("mine", "Install it"),
        ] {
            assert!(remedy(name).contains(word), "{}", remedy(name));
        }
    }
}
