//! The processes of the host's that carry a container, found by its id in their command lines.

/// Those whose command line names the container, except the one that carries what its agent says: each with its name. Of
/// root's alone, for anybody may write what he likes on a command line.
pub(super) fn of(id: &str, but: Option<u32>) -> Vec<(u32, String)> {
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let mut found: Vec<(u32, String)> = processes
        .filter_map(|process| {
            let number: u32 = process.file_name().to_str()?.parse().ok()?;
            let is_roots = std::os::unix::fs::MetadataExt::uid(&process.metadata().ok()?) == 0;
            let line = std::fs::read(process.path().join("cmdline")).ok()?;
            let ours = is_roots && Some(number) != but && number != std::process::id() && names(&line, id);
            let name = std::fs::read_to_string(process.path().join("comm")).ok()?;
            ours.then(|| (number, name.trim_end().to_owned()))
        })
        .collect();
    found.sort_unstable();
    found
}

/// Whether the id is a word of that command line, or of a path in it.
fn names(line: &[u8], id: &str) -> bool {
    let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    let line = String::from_utf8_lossy(line);
    line.match_indices(id).any(|(at, found)| {
        let before = &line[..at];
        // A hypervisor is named after it: `-name sandbox-ID`.
        let before = before.strip_suffix("sandbox-").unwrap_or(before);
        let [before, after] = [before.as_bytes().last(), line.as_bytes().get(at + found.len())];
        !before.is_some_and(is_part) && !after.is_some_and(is_part)
    })
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    #[test]
    fn a_container_is_named_by_its_whole_id_alone() {
        for (line, is_named) in [
            ("containerd-shim-x-v2\0-namespace\0tare\0-id\0tare-r-g\0-address\0/run/s", true),
            ("/usr/bin/hypervisor\0-name\0sandbox-tare-r-g,debug-threads=on", true),
            ("server\0--socket-path=/run/vc/vm/tare-r-g/vhost-fs.sock", true),
            ("shim\0-id\0tare-r-g2", false),
            ("shim\0-id\0tare-r-g-2", false),
            ("shim\0-id\0x-tare-r-g", false),
            ("", false),
        ] {
            assert_eq!(names(line.as_bytes(), "tare-r-g"), is_named, "{line}");
        }
    }

    #[test]
    fn a_process_is_found_by_the_id_on_its_command_line() {
        let id = format!("tare-carriers-{}", std::process::id());
        let mut child = std::process::Command::new("sh")
            .args(["-c", "echo runs; read x", &id])
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        // The kernel shows the arguments of a new program a moment after `spawn` has returned.
        child.stdout.take().unwrap().read_exact(&mut [0; 5]).unwrap();
        let roots = rustix::process::geteuid().is_root();
        let (found, but) = (of(&id, None), of(&id, Some(child.id())));
        child.kill().unwrap();
        child.wait().unwrap();
        let expected: Vec<u32> = roots.then_some(child.id()).into_iter().collect();
        assert_eq!(found.iter().map(|(number, _)| *number).collect::<Vec<_>>(), expected, "{found:?}");
        assert_eq!(but, []);
    }
}
