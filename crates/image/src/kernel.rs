//! The kernel that guests boot.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use crate::cache::cache_directory;
use crate::error::{ImageError, Result, reading};

const REMEDY: &str = "run `make platforms`, which fetches one, or name one in the study: kernel = \"PATH\"";

/// How kernels are called beside their release.
const IMAGE_PREFIX: &str = "vmlinuz-";

/// A kernel with its modules.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kernel {
    /// The image that a machine monitor loads.
    pub image: PathBuf,
    /// Its modules, `.../lib/modules/RELEASE`.
    pub modules: PathBuf,
    /// Its release, as `uname -r` tells it.
    pub release: String,
}

impl Kernel {
    /// The kernel at `explicit`, its modules in `lib/modules` beside its folder or in the host's; or else the newest
    /// that `make platforms` put into the cache, or else the newest of the host's own.
    ///
    /// # Errors
    /// When there is none, it cannot be read, or its modules are missing.
    pub fn find(explicit: Option<&Path>) -> Result<Self> {
        if let Some(image) = explicit {
            return at(image);
        }
        let fetched = cache_directory().join("kernel");
        let places = [fetched.as_path(), Path::new("/")];
        if let Some(kernel) = places.iter().find_map(|place| newest(place)) {
            return Ok(kernel);
        }
        let looked: Vec<String> =
            places.iter().map(|place| place.join("boot").join("vmlinuz-*").display().to_string()).collect();
        let why = format!("there is no {} that is readable and has its modules beside it", looked.join(" and no "));
        Err(ImageError::new("find a kernel for virtual machines", why, REMEDY))
    }
}

/// The kernel at a place that the user named.
fn at(image: &Path) -> Result<Kernel> {
    let tried = || format!("use the kernel {}", image.display());
    let failed = |why: String| ImageError::new(tried(), why, REMEDY);
    let image = image.canonicalize().map_err(reading(image))?;
    if !image.is_file() {
        return Err(failed("it is no file".into()));
    }
    let release = release_inside(&image)?.or_else(|| release_in_name(&image));
    let release = release.ok_or_else(|| {
        failed("its release is neither in its header nor in its name, which should be vmlinuz-RELEASE".into())
    })?;
    let beside = image.parent().and_then(Path::parent).map(Path::to_owned);
    let places: Vec<PathBuf> =
        beside.into_iter().chain([PathBuf::from("/")]).map(|place| place.join("lib/modules").join(&release)).collect();
    match places.iter().find(|place| place.join("kernel").is_dir()) {
        Some(modules) => Ok(Kernel { image, modules: modules.clone(), release }),
        None => {
            let looked: Vec<String> = places.iter().map(|place| place.display().to_string()).collect();
            Err(failed(format!("its modules are not in {}", looked.join(" nor in "))))
        }
    }
}

/// The newest kernel below a place that is readable and has its modules.
fn newest(place: &Path) -> Option<Kernel> {
    let entries = fs::read_dir(place.join("boot")).ok()?;
    let mut found: Vec<Kernel> = entries
        .filter_map(|entry| {
            let image = entry.ok()?.path();
            let release = release_in_name(&image)?;
            let modules = place.join("lib/modules").join(&release);
            // The host's own kernels are often readable by root alone.
            (modules.join("kernel").is_dir() && File::open(&image).is_ok()).then_some(Kernel {
                image,
                modules,
                release,
            })
        })
        .collect();
    found.sort_by_key(|kernel| version(&kernel.release));
    found.pop()
}

fn release_in_name(image: &Path) -> Option<String> {
    let name = image.file_name()?.to_str()?.strip_prefix(IMAGE_PREFIX)?;
    (!name.is_empty()).then(|| name.to_owned())
}

/// The release in the header of an x86 kernel (Documentation/arch/x86/boot.rst: `kernel_version`), if it is one.
fn release_inside(image: &Path) -> Result<Option<String>> {
    let file = File::open(image).map_err(reading(image))?;
    let read = |at: u64, length: usize| {
        let mut bytes = vec![0; length];
        file.read_exact_at(&mut bytes, at).is_ok().then_some(bytes)
    };
    Ok(read(0x202, 14).and_then(|header| {
        let offset = header.starts_with(b"HdrS").then(|| u16::from_le_bytes([header[12], header[13]]));
        let text = read(u64::from(offset.filter(|&offset| offset != 0)?) + 0x200, 128)?;
        let word = text.split(|&byte| byte == b' ' || byte == 0).next()?;
        let safe = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.+~".contains(byte);
        // It becomes part of a path.
        (!word.is_empty() && !word.starts_with(b".") && word.iter().all(safe))
            .then(|| String::from_utf8_lossy(word).into_owned())
    }))
}

/// A release as it is compared: numbers by their value, whatever is between them as text.
fn version(release: &str) -> Vec<(u64, String)> {
    let mut parts = Vec::new();
    let mut rest = release;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let (number, after) = rest.split_at(digits);
        let text = after.find(|c: char| c.is_ascii_digit()).unwrap_or(after.len());
        parts.push((number.parse().unwrap_or(0), after[..text].to_owned()));
        rest = &after[text..];
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place_with(releases: &[&str]) -> tempfile::TempDir {
        let place = tempfile::tempdir().unwrap();
        fs::create_dir(place.path().join("boot")).unwrap();
        for release in releases {
            fs::write(place.path().join("boot").join(format!("vmlinuz-{release}")), b"no header").unwrap();
            fs::create_dir_all(place.path().join("lib/modules").join(release).join("kernel")).unwrap();
        }
        place
    }

    #[test]
    fn the_newest_is_chosen_by_number() {
        let place = place_with(&["6.1.0-9-cloud-amd64", "6.1.0-56-cloud-amd64", "5.10.0-99-cloud-amd64"]);
        assert_eq!(newest(place.path()).unwrap().release, "6.1.0-56-cloud-amd64");
        fs::remove_dir_all(place.path().join("lib/modules/6.1.0-56-cloud-amd64")).unwrap();
        assert_eq!(newest(place.path()).unwrap().release, "6.1.0-9-cloud-amd64", "one without modules is passed over");
        assert_eq!(newest(Path::new("/no/such/place")), None);
    }

    #[test]
    fn a_named_kernel_is_found_with_its_modules_or_refused() {
        let place = place_with(&["6.1.0"]);
        let image = place.path().join("boot/vmlinuz-6.1.0");
        assert_eq!(
            Kernel::find(Some(&image)).unwrap().modules,
            image.parent().unwrap().parent().unwrap().canonicalize().unwrap().join("lib/modules/6.1.0")
        );
        let other = place.path().join("boot/bzImage");
        fs::write(&other, b"neither header nor name").unwrap();
        assert!(Kernel::find(Some(&other)).unwrap_err().to_string().contains("release"));
        let lonely = place.path().join("boot/vmlinuz-7.0");
        fs::write(&lonely, b"").unwrap();
        let error = Kernel::find(Some(&lonely)).unwrap_err().to_string();
        assert!(error.contains("lib/modules/7.0") && error.contains("make platforms"), "{error}");
        assert!(Kernel::find(Some(Path::new("/no/such/kernel"))).is_err());
        assert!(Kernel::find(Some(place.path())).unwrap_err().to_string().contains("no file"));
    }

    #[test]
    fn the_release_is_read_from_an_x86_header_in_bounds() {
        let place = tempfile::tempdir().unwrap();
        let image = place.path().join("bzImage");
        let written = |offset: u16, text: &[u8]| {
            let mut bytes = vec![0; 0x200 + usize::from(offset) + 128];
            bytes[0x202..0x206].copy_from_slice(b"HdrS");
            bytes[0x20e..0x210].copy_from_slice(&offset.to_le_bytes());
            bytes[0x200 + usize::from(offset)..][..text.len()].copy_from_slice(text);
            fs::write(&image, bytes).unwrap();
            release_inside(&image).unwrap()
        };
        assert_eq!(written(0x300, b"6.1.0-56 (who@where) #1").as_deref(), Some("6.1.0-56"));
        assert_eq!(written(0x300, b"../../etc x"), None);
        assert_eq!(written(0, b""), None);
        fs::write(&image, b"short").unwrap();
        assert_eq!(release_inside(&image).unwrap(), None);
    }
}
