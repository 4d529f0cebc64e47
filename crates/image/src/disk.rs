//! Disks, looked at before anybody opens them.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};

use crate::error::{ImageError, Result, reading};
use crate::qcow2;

/// Format of a disk. It is always said and never guessed: a guest that writes a qcow2 header into its raw disk would
/// else have the host's files opened for it the next time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// Byte for byte.
    Raw,
    /// QEMU's format that grows and can be laid over another.
    Qcow2,
}

impl Format {
    /// As studies and machine monitors write it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Raw => "raw",
            Self::Qcow2 => "qcow2",
        }
    }
}

/// A disk that was looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Disk {
    /// The file or block device, links resolved.
    pub path: PathBuf,
    /// Its format.
    pub format: Format,
    /// Size that a guest sees, bytes.
    pub virtual_size: u64,
}

/// Looks at a disk of the user's: a file or block device of the format that he says, which refers to nothing else.
///
/// # Errors
/// When it cannot be read, is of another format, refers to a backing or data file, is encrypted, has snapshots, or
/// makes no sense.
pub fn inspect(path: &Path, format: Format) -> Result<Disk> {
    let path = path.canonicalize().map_err(reading(path))?;
    let refused = |why: String, remedy: &str| {
        ImageError::new(format!("use the {} image {}", format.name(), path.display()), why, remedy)
    };
    // Opening a pipe would wait for its writer, and what is opened is what is looked at.
    let mut file = File::options()
        .read(true)
        .custom_flags(OFlags::NONBLOCK.bits().cast_signed())
        .open(&path)
        .map_err(reading(&path))?;
    let kind = file.metadata().map_err(reading(&path))?.file_type();
    if !kind.is_file() && !kind.is_block_device() {
        return Err(refused("it is neither a file nor a block device".into(), "name the image itself"));
    }
    let length = file.seek(SeekFrom::End(0)).map_err(reading(&path))?;
    let start = start_of(&mut file).map_err(reading(&path))?;
    let virtual_size = match format {
        Format::Raw if start.starts_with(&qcow2::MAGIC) => {
            return Err(refused("it begins as qcow2 does".into(), "say format = \"qcow2\" if that is what it is"));
        }
        Format::Raw if length == 0 || !length.is_multiple_of(512) => {
            let why = format!("its {length} bytes are no whole number of sectors of 512 bytes");
            return Err(refused(why, "is it the right file, and whole?"));
        }
        Format::Raw => length,
        Format::Qcow2 => {
            let plain = "make a plain one: qemu-img convert -O qcow2 OLD NEW";
            qcow2::virtual_size(&start, length).map_err(|why| refused(why, plain))?
        }
    };
    Ok(Disk { path, format, virtual_size })
}

fn start_of(file: &mut File) -> io::Result<Vec<u8>> {
    file.seek(SeekFrom::Start(0))?;
    let mut start = Vec::new();
    file.take(qcow2::LOOKED_AT).read_to_end(&mut start)?;
    Ok(start)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::process::Command;

    #[test]
    fn a_disk_is_what_its_user_says_or_refused() {
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().canonicalize().unwrap().join(name);
        fs::write(at("plain.qcow2"), qcow2::tests::plain()).unwrap();
        fs::write(at("disk.raw"), [0; 1024]).unwrap();
        fs::write(at("cut.raw"), [0; 1000]).unwrap();
        symlink(at("disk.raw"), at("link")).unwrap();

        assert_eq!(inspect(&at("plain.qcow2"), Format::Qcow2).unwrap().virtual_size, 1 << 30);
        assert_eq!(
            inspect(&at("link"), Format::Raw).unwrap(),
            Disk { path: at("disk.raw"), format: Format::Raw, virtual_size: 1024 }
        );
        let why = |name: &str, format| inspect(&at(name), format).unwrap_err().to_string();
        assert!(why("plain.qcow2", Format::Raw).contains("say format = \"qcow2\""));
        assert!(why("disk.raw", Format::Qcow2).contains("does not begin"));
        assert!(why("cut.raw", Format::Raw).contains("sectors"));
        assert!(why("missing", Format::Raw).contains("missing"));
    }

    #[test]
    fn what_is_no_disk_is_refused_and_never_waited_for() {
        let place = tempfile::tempdir().unwrap();
        let pipe = place.path().join("pipe");
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, rustix::fs::Mode::RUSR, 0).unwrap();
        for path in [place.path(), &pipe, Path::new("/dev/zero")] {
            let why = inspect(path, Format::Raw).unwrap_err().to_string();
            assert!(why.contains("neither a file nor a block device"), "{why}");
        }
    }

    #[test]
    fn what_the_real_program_writes_is_distinguished() {
        let create = |arguments: &[&str], at: &Path| {
            let mut command = Command::new("qemu-img");
            command.args(["create", "-q", "-f", "qcow2"]).args(arguments).arg(at).arg("64M");
            command.status().is_ok_and(|status| status.success())
        };
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().join(name);
        if !create(&[], &at("plain")) {
            eprintln!("SKIPPED: no qemu-img here");
            return;
        }
        assert_eq!(inspect(&at("plain"), Format::Qcow2).unwrap().virtual_size, 64 << 20);
        for (name, options) in [
            ("v2", "compat=0.10"),
            ("small", "cluster_size=512"),
            ("large", "cluster_size=2M"),
            ("fine", "extended_l2=on"),
            ("zstd", "compression_type=zstd"),
        ] {
            assert!(create(&["-o", options], &at(name)), "{name}");
            assert_eq!(inspect(&at(name), Format::Qcow2).unwrap().virtual_size, 64 << 20, "{name}");
        }
        let backing = at("plain").display().to_string();
        assert!(create(&["-b", &backing, "-F", "qcow2"], &at("overlay")));
        assert!(inspect(&at("overlay"), Format::Qcow2).unwrap_err().to_string().contains("backing file"));
        let data = format!("data_file={}", at("data").display());
        assert!(create(&["-o", &data], &at("split")));
        assert!(inspect(&at("split"), Format::Qcow2).unwrap_err().to_string().contains("another file"));
        assert!(Command::new("qemu-img").args(["snapshot", "-c", "s"]).arg(at("plain")).status().unwrap().success());
        assert!(inspect(&at("plain"), Format::Qcow2).unwrap_err().to_string().contains("snapshots"));
    }
}
