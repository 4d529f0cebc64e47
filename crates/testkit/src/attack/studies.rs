//! Study files made to do harm to who plans them.

use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use super::Chance;

/// So many studies there are, from 0 on.
pub const STUDIES: u32 = 200;

/// Writes the study of this number into a folder; gives the path that is to be planned. Every program that it names makes
/// the file `canary`.
///
/// # Errors
/// When the folder cannot be written.
pub fn study(number: u32, folder: &Path, canary: &Path) -> std::io::Result<PathBuf> {
    let mut chance = Chance::new(u64::from(number));
    let program = program(folder, canary)?;
    let path = folder.join("study.toml");
    let bytes = match number % 8 {
        0 | 1 => nested(&mut chance),
        2 => numbers(&mut chance),
        3 => programs(&mut chance, folder, &program)?,
        4 => texts(&mut chance),
        5 => paths(&mut chance, folder)?,
        6 => mutated(&mut chance),
        _ => return file(&mut chance, folder),
    };
    std::fs::write(&path, bytes)?;
    Ok(path)
}

/// A program that leaves a trace.
///
/// # Errors
/// When the folder cannot be written.
pub fn program(folder: &Path, canary: &Path) -> std::io::Result<PathBuf> {
    let program = folder.join("runsc");
    std::fs::write(&program, format!("#!/bin/sh\n: >> '{}'\necho 'postgres (PostgreSQL) 15.1'\n", canary.display()))?;
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755))?;
    Ok(program)
}

/// A study with these arms and cases.
fn with(arms: &str, cases: &str) -> String {
    format!(
        "schema = 1\nname = \"some\"\nquestion = \"Which?\"\nbaseline = \"a\"\nblocks = 2\nseed = 1\n\
         [arms.a]\nplatform = \"native\"\n{arms}\n[guest]\ncpus = 1\nmemory = \"64MiB\"\n[phases]\nsteady-state = \"1s\"\n{cases}\n"
    )
}

const ARM: &str = "[arms.b]\nplatform = \"container\"";
const CASE: &str = "[cases.idle]\nworkload = \"rr\"\n";

/// An arm of which the first line names the platform, and the others are its options.
fn with_options(text: &str) -> String {
    let (platform, options) = text.split_once('\n').unwrap_or((text, ""));
    format!("[arms.b]\n{platform}\n[arms.b.options]\n{options}")
}

/// A case of which the first line names the workload, and the others are its parameters.
fn with_parameters(text: &str) -> String {
    let (workload, parameters) = text.split_once('\n').unwrap_or((text, ""));
    format!("[cases.x]\n{workload}\n[cases.x.parameters]\n{parameters}")
}

/// What is deep, long or many.
fn nested(chance: &mut Chance) -> Vec<u8> {
    let depth = chance.one_of(&[50, 500, 5_000, 100_000]);
    let many = |n: usize, line: &dyn Fn(usize) -> String| (0..n).map(line).collect::<String>();
    match chance.below(12) {
        0 => with(ARM, &format!("{CASE}parameters = {}1{}", "[".repeat(depth), "]".repeat(depth))),
        1 => with(ARM, &format!("{CASE}parameters = {}1{}", "{a=".repeat(depth), "}".repeat(depth))),
        2 => with(ARM, &format!("{CASE}[x{}]\ny = 1", ".a".repeat(depth))),
        3 => with(ARM, &format!("{CASE}x{} = 1", ".a".repeat(depth))),
        4 => with(&many(25_000, &|n| format!("[arms.x{n}]\nplatform=\"null\"\n")), CASE),
        5 => with(ARM, &many(25_000, &|n| format!("[cases.x{n}]\nworkload=\"rr\"\n"))),
        6 => with(&format!("{ARM}\nlabel = \"{}\"", "x".repeat(900_000)), CASE),
        7 => "x".repeat(5_000_000),
        8 => with(ARM, &format!("{CASE}{}", many(100_000, &|_| "x y\n".to_owned()))),
        9 => with(ARM, &format!("{CASE}{}", many(40_000, &|n| format!("unknown{n} = {n}\n")))),
        10 => with(ARM, &format!("{CASE}{}", many(60_000, &|_| "workload = 1\n".to_owned()))),
        _ => with(ARM, &format!("{CASE}parameters = {{ request = [{}] }}", "1,".repeat(200_000))),
    }
    .into_bytes()
}

/// Numbers, sizes and times that overflow or mean nothing.
fn numbers(chance: &mut Chance) -> Vec<u8> {
    const FIELDS: [&str; 8] = [
        "blocks = 2",
        "seed = 1",
        "cpus = 1",
        "memory = \"64MiB\"",
        "steady-state = \"1s\"",
        "schema = 1",
        "name = \"some\"",
        "baseline = \"a\"",
    ];
    const VALUES: [&str; 22] = [
        "0",
        "-1",
        "4294967295",
        "4294967296",
        "9223372036854775807",
        "18446744073709551616",
        "nan",
        "inf",
        "-inf",
        "1e308",
        "1e-320",
        "0x7fffffffffffffff",
        "\"99999999999999999999h\"",
        "\"1e400s\"",
        "\"18446744073709551615B\"",
        "\"16777216TiB\"",
        "\"-1s\"",
        "\"NaNs\"",
        "\"\"",
        "[]",
        "{}",
        "1979-05-27T07:32:00Z",
    ];
    let (field, value) = (chance.one_of(&FIELDS), chance.one_of(&VALUES));
    let key = field.split(' ').next().unwrap_or_default();
    let text = match chance.below(4) {
        0 => with(ARM, &format!("{CASE}load = {{ closed = {{ clients = {value}, think-time = {value} }} }}")),
        1 => with(ARM, &format!("{CASE}load = {{ open = {{ rate = {value} }} }}\nguests = {value}")),
        2 => with(ARM, &format!("{CASE}density = {{ guests = [1, 2, {value}] }}\n[lab]\nmtu = {value}")),
        _ => with(ARM, CASE).replace(field, &format!("{key} = {value}")),
    };
    text.into_bytes()
}

/// Options that name programs.
fn programs(chance: &mut Chance, folder: &Path, program: &Path) -> std::io::Result<Vec<u8>> {
    let shown = program.display();
    let here = folder.display();
    let config = folder.join("ssh_config");
    std::fs::write(&config, format!("Match exec \"{shown}\"\n  ProxyCommand {shown}\n"))?;
    for name in ["postgres", "initdb", "pg_ctl", "qemu-img", "mke2fs", "java"] {
        let _ = symlink(program, folder.join(name));
    }
    let (config, skip) = (config.display(), chance.one_of(&["", "skip-unavailable = true\n"]));
    let arm = |text: String| with(&with_options(&text), CASE);
    let case = |text: String| with(ARM, &with_parameters(&text));
    let text = match chance.below(11) {
        0 => arm(format!("platform = \"oci\"\nruntime = \"{shown}\"")),
        1 => arm(format!(
            "platform = \"oci\"\nruntime = \"{shown}\"\nflags = [\"--x\"]\ngvisor = {{ platform = \"systrap\" }}"
        )),
        2 => arm(format!("platform = \"qemu\"\nprogram = \"{shown}\"\nvirtiofsd = \"{shown}\"")),
        3 => arm(format!(
            "platform = \"qemu\"\nprogram = \"{shown}\"\ndata-disk = {{ size = \"64MiB\", iscsi = \"hypervisor\", aio = \"io-uring\" }}"
        )),
        4 => arm(format!("platform = \"ssh\"\nhost = \"127.0.0.1\"\nconfig = \"{config}\"")),
        5 => arm(format!(
            "platform = \"ssh\"\nhost = \"x\"\naddress = \"127.0.0.1\"\nconfig = \"{config}\"\nrestore = [\"{shown}\"]\nstart = [\"{shown}\"]\nready = [\"{shown}\"]\nstop = [\"{shown}\"]"
        )),
        6 => arm(format!(
            "platform = \"libvirt\"\nuri = \"qemu+ext:///system?command={shown}\"\ndomain = {{ existing = \"x\", address = \"127.0.0.1\" }}"
        )),
        7 => arm(format!(
            "platform = \"libvirt\"\nuri = \"qemu+ssh://h/system?command={shown}&netcat={shown}\"\ndomain = {{ existing = \"x\", address = \"127.0.0.1\" }}"
        )),
        8 => case(format!("workload = \"store\"\npostgres = \"{here}\"")),
        9 => case(format!(
            "workload = \"social\"\npostgres = \"{here}\"\n[cases.java]\nworkload = \"java\"\nparameters = {{ java = \"{here}\" }}"
        )),
        _ => case(format!(
            "workload = \"web-banking\"\njava = \"{here}\"\nnginx = \"{shown}\"\n[cases.e]\nworkload = \"exec\"\nparameters = {{ command = [\"{shown}\"] }}"
        )),
    };
    Ok(text.replacen("seed = 1\n", &format!("seed = 1\n{skip}"), 1).into_bytes())
}

/// Texts that command a terminal, turn writing or ask for much.
fn texts(chance: &mut Chance) -> Vec<u8> {
    const HOSTILE: [&str; 8] = [
        "\\u001b[2J\\u001b]0;owned\\u0007",
        "\\u009b31m",
        "\\u202egnp.exe",
        "\\u2066\\u2069",
        "\\u0000",
        "a\\r\\nb",
        "\u{202e}gnp",
        "\u{1b}[31m\u{7}",
    ];
    let text = chance.one_of(&HOSTILE);
    match chance.below(10) {
        0 => with(&format!("{ARM}\nlabel = \"{text}\""), CASE),
        1 => with(ARM, CASE).replace("Which?", text),
        2 => with(ARM, CASE).replace("\"some\"", &format!("\"{text}\"")),
        3 => with(ARM, &format!("{CASE}\"{text}\" = 1")),
        4 => with(&format!("[arms.\"{text}\"]\nplatform = \"{text}\""), CASE),
        5 => with(ARM, &format!("[cases.\"{text}\"]\nworkload = \"{text}\"")),
        6 => format!("{text} = [\n{}", with(ARM, CASE)),
        7 => with(&format!("[arms.b]\nplatform = \"oci\"\n[arms.b.options]\nruntime = \"/{text}\""), CASE),
        8 => {
            let bomb = chance.one_of(&["(a{1000}){1000}", "(?:(?:(?:x{100}){100}){100}){100}", "(a|aa)+$", "(((((((((((((((((((((x*)*)*", "\\\\p{L}{5000}", "(?P<x>.)(?P<x>.)"]);
            with(ARM, &format!("[cases.e]\nworkload = \"exec\"\n[cases.e.parameters]\ncommand = [\"x\"]\nmetrics = {{ m = {{ regex = \"{bomb}\", unit = \"s\", better = \"lower\" }} }}"))
        }
        _ => {
            let path = chance.one_of(&["$..[*]..[*]..[*]", "$[", "$[?@.a==1e999]", "$['\\u0000']"]);
            with(ARM, &format!("[cases.e]\nworkload = \"exec\"\n[cases.e.parameters]\ncommand = [\"x\"]\nmetrics = {{ m = {{ json = \"{path}\", unit = \"s\", better = \"lower\" }} }}"))
        }
    }
    .into_bytes()
}

/// Options that name files which are none, never end, or lie elsewhere.
fn paths(chance: &mut Chance, folder: &Path) -> std::io::Result<Vec<u8>> {
    let pipe = folder.join("pipe");
    Command::new("mkfifo").arg(&pipe).status()?;
    let pipe = pipe.display().to_string();
    let path = chance.one_of(&[
        "/dev/zero",
        "/dev/urandom",
        "/proc/self/mem",
        "/proc/kmsg",
        "../../../../etc/shadow",
        "/",
        "",
        "/dev/stdin",
        &pipe,
        &pipe,
    ]);
    let arm = |text: String| with(&with_options(&text), CASE);
    let text = match chance.below(10) {
        0 => arm(format!("platform = \"container\"\nrootfs = {{ archive = \"{path}\" }}")),
        1 => arm(format!("platform = \"container\"\nrootfs = {{ directory = \"{path}\" }}")),
        2 => arm(format!("platform = \"qemu\"\nkernel = \"{path}\"")),
        3 => arm(format!("platform = \"qemu\"\nimage = {{ file = {{ path = \"{path}\", format = \"qcow2\" }} }}")),
        4 => arm(format!(
            "platform = \"qemu\"\nimage = {{ file = {{ path = \"{path}\", format = \"raw\" }} }}\nfirmware = \"{path}\""
        )),
        5 => arm(format!(
            "platform = \"ssh\"\nhost = \"h\"\nidentity = \"{path}\"\nconfig = \"{path}\"\nagent = \"{path}\""
        )),
        6 => with(ARM, &format!("[cases.w]\nworkload = \"web-support\"\n[cases.w.parameters]\ntables = \"{path}\"")),
        7 => with(
            ARM,
            &format!(
                "[cases.e]\nworkload = \"exec\"\n[cases.e.parameters]\ncommand = [\"x\"]\nenv = {{ A = {{ from-file = \"{path}\" }} }}"
            ),
        ),
        8 => with(
            ARM,
            &format!("[cases.s]\nworkload = \"store\"\n[cases.s.parameters]\nurl = {{ from-file = \"{path}\" }}"),
        ),
        _ => arm(format!("platform = \"container\"\ndata = {{ directory = \"{path}\" }}")),
    };
    Ok(text.into_bytes())
}

/// A sound study with bytes changed, cut out or doubled.
fn mutated(chance: &mut Chance) -> Vec<u8> {
    let sound = include_str!("../../../../studies/quickstart.toml");
    let mut bytes = sound.as_bytes().to_vec();
    for _ in 0..=chance.below(40) {
        let at = chance.below(bytes.len());
        match chance.below(5) {
            0 => bytes[at] = chance.next() as u8,
            1 => bytes.truncate(at.max(1)),
            2 => drop(bytes.drain(at..(at + chance.below(200)).min(bytes.len()))),
            3 => bytes.insert(at, chance.one_of(b"\"'[]{}=.,#\n\x00\x1b\xff")),
            _ => {
                let part = bytes[at..(at + chance.below(2000)).min(bytes.len())].to_vec();
                bytes.splice(at..at, part);
            }
        }
        if bytes.is_empty() {
            bytes.push(b'[');
        }
    }
    bytes
}

/// What is named as a study and is no file, or no text.
fn file(chance: &mut Chance, folder: &Path) -> std::io::Result<PathBuf> {
    let path = folder.join("study.toml");
    match chance.below(9) {
        0 => std::fs::create_dir(&path)?,
        1 => drop(Command::new("mkfifo").arg(&path).status()?),
        2 => symlink("/dev/zero", &path)?,
        3 => symlink("study.toml", &path)?,
        4 => return Ok(chance.one_of(&["/dev/zero", "/dev/stdin", "/proc/self/mem", "/proc/kcore"]).into()),
        5 => return Ok(folder.join("\u{1b}[2J\u{202e}.toml")),
        6 => std::fs::write(&path, (0..100_000).map(|_| chance.next() as u8).collect::<Vec<_>>())?,
        7 => {
            let large = std::fs::File::create(&path)?;
            large.set_len(1 << 40)?;
        }
        _ => return Ok("quickstar\u{1b}[31mt".into()),
    }
    Ok(path)
}
