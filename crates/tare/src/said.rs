//! Long texts of guests and programs: the terminal has their first line and their end, a file has the whole.

use std::path::PathBuf;

use tare_model::text::brief;

use crate::output;

/// The text for a terminal. What is long is kept whole in the directory `folder` of this user's cache, in a file that nobody
/// else may read and that is named; secrets are taken out of it as of what is printed.
pub fn shortened(text: &str, folder: &str, name: &str) -> String {
    let Some(short) = brief(text) else { return text.to_owned() };
    match keep(text, folder, name) {
        Ok(file) => format!("{short}\nall of it is in {}", file.display()),
        Err(error) => format!("{short}\nall of it could not be kept: {error}"),
    }
}

fn keep(text: &str, folder: &str, name: &str) -> tare_lab::Result<PathBuf> {
    let file = tare_lab::private_cache(folder)?.join(format!("{}.log", plain(name)));
    tare_lab::write_private(&file, output::shown(text, false).as_bytes())?;
    Ok(file)
}

/// The name of a file for a platform, an arm or a study.
fn plain(name: &str) -> String {
    let words = name.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join("-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_leads_nowhere_else() {
        let names = ["qemu tcg (emulated)", "../../etc/passwd", "my-arm"].map(plain);
        assert_eq!(names, ["qemu-tcg-emulated", "etc-passwd", "my-arm"]);
        assert_eq!(shortened("short", "none", "x"), "short");
    }
}
