//! Tables of figures made to do harm to who imports them.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::Chance;

/// So many imports there are, from 0 on.
pub const IMPORTS: u32 = 100;

const STORE: &str = "configuration,client,guest,orders_per_minute\n";
const DENSITY: &str = "platform,guests,operations_in_run\n";
const WEB: &str = "workload,environment,sessions,response_s,cpu_cores,network_mbps,disk_ms\n";
const HOSTILE: [&str; 12] =
    ["=1+1", "@SUM(A1)", "../../etc", "a/b", "\u{1b}[2J", "\u{202e}gnp", "", "\0", "-", "nan", "1e999", "\""];

/// Writes the table of this number into a folder; gives what is to be imported.
///
/// # Errors
/// When the folder cannot be written.
pub fn import(number: u32, folder: &Path) -> std::io::Result<PathBuf> {
    let mut chance = Chance::new(1_000_000 + u64::from(number));
    let path = folder.join("table.csv");
    let head = chance.one_of(&[STORE, DENSITY, WEB]);
    let columns = head.matches(',').count();
    let rows = |n: usize, row: &dyn Fn(usize) -> String| (0..n).map(|n| row(n) + "\n").collect::<String>();
    let text = match number % 12 {
        0 => return not_a_file(&mut chance, folder),
        1 => format!("{STORE}{}", rows(90_000, &|n| format!("c{n},1,1,100"))),
        2 => format!("{DENSITY}{}", rows(90_000, &|n| format!("p{n},1,100"))),
        3 => format!("{DENSITY}{}", rows(60_000, &|n| format!("p,{},100", n + 1))),
        4 => format!("{head}{}", "x".repeat(3 << 20)),
        5 => format!("{head}\"{}", "x,1\n".repeat(100_000)),
        6 => format!("{head}{}\n", vec![chance.one_of(&HOSTILE); columns + 1].join(",")),
        7 => {
            let figure = chance.one_of(
                &["9".repeat(400).as_str(), "1e308", "-1", "nan", "inf", "0x10", "1.2.3", "٣", "18446744073709551616"]
                    .map(str::to_owned),
            );
            format!("{head}a{}\n", format!(",{figure}").repeat(columns))
        }
        8 => format!("{}\n{}", head.trim_end().replace("guest", chance.one_of(&HOSTILE)), "a,1,1,1\n"),
        9 => format!("{STORE}{}", rows(3, &|_| "a,1,1,5".to_owned())),
        10 => format!("{}{}", "a,".repeat(200_000), head),
        _ => String::new(),
    };
    let mut bytes = text.into_bytes();
    if bytes.is_empty() {
        bytes = (0..10_000).map(|_| chance.next() as u8).collect();
    } else if chance.below(3) == 0 {
        let at = chance.below(bytes.len());
        bytes[at] = chance.one_of(b"\0\"\xff\x1b");
    }
    if chance.below(4) == 0 {
        std::fs::write(
            folder.join("claims.toml"),
            chance.one_of(&["x = [[[", "[[claim]]\ntext = \"\\u001b[2J\"\n", "\u{1b}", "claim = 1e400"]),
        )?;
    }
    std::fs::write(&path, bytes)?;
    Ok(if chance.below(2) == 0 { path } else { folder.to_owned() })
}

fn not_a_file(chance: &mut Chance, folder: &Path) -> std::io::Result<PathBuf> {
    let path = folder.join("table.csv");
    match chance.below(6) {
        0 => drop(Command::new("mkfifo").arg(&path).status()?),
        1 => symlink("/dev/zero", &path)?,
        2 => return Ok("/dev/zero".into()),
        3 => std::fs::create_dir(&path)?,
        4 => std::fs::File::create(&path)?.set_len(1 << 40)?,
        _ => return Ok(folder.join("\u{1b}]0;x\u{7}.csv")),
    }
    Ok(path)
}
