//! `tare image`.

use serde_json::json;
use tare_image::{Cached, DebianSpec, Format, ImageError, Kernel};
use tare_report::Page;

use crate::args::{self, Built, ImageArguments, ImageCommand, ImageFormat};
use crate::exit::{Exit, Failure};
use crate::{forms, output};

/// Does what was asked about images.
pub fn command(arguments: &ImageArguments) -> Result<Exit, Failure> {
    match &arguments.command {
        ImageCommand::Build { what: Built::Debian, packages, suite } => {
            build(&DebianSpec { suite: suite.clone(), packages: packages.clone() })
        }
        ImageCommand::Check { image, format } => {
            let format = match format {
                ImageFormat::Raw => Format::Raw,
                ImageFormat::Qcow2 => Format::Qcow2,
            };
            let disk = tare_image::inspect(image, format).map_err(failed)?;
            output::print(&format!("{}: {}, {}", disk.path.display(), format.name(), size(disk.virtual_size)))?;
            Ok(Exit::Success)
        }
        ImageCommand::List(shown) => list(shown.format),
        ImageCommand::Clear => {
            let removed = tare_image::clear().map_err(failed)?;
            let bytes = removed.iter().map(|cached| cached.bytes).sum();
            output::print(&format!("{} files removed, {}", removed.len(), size(bytes)))?;
            Ok(Exit::Success)
        }
    }
}

fn failed(error: ImageError) -> Failure {
    Failure::new(error, Exit::Failure)
}

fn build(spec: &DebianSpec) -> Result<Exit, Failure> {
    // What is going on goes to standard error: standard output is the path.
    let mut progress = |message: &str| {
        output::note(message);
    };
    let disk = tare_image::debian_build(spec, &mut progress).map_err(failed)?;
    output::print(&disk.path.display().to_string())?;
    Ok(Exit::Success)
}

fn list(format: args::Format) -> Result<Exit, Failure> {
    let kernel = Kernel::find(None);
    let cached = tare_image::cached().map_err(failed)?;
    let cache = tare_image::cache_directory();
    let data = json!({
        "kernel": kernel.as_ref().ok().map(|kernel| json!({ "release": kernel.release, "image": kernel.image })),
        "no_kernel": kernel.as_ref().err().map(ToString::to_string),
        "cache": cache,
        "cached": cached.iter().map(|Cached { path, bytes }| json!({ "path": path, "bytes": bytes })).collect::<Vec<_>>(),
    });
    let page = |_| {
        let mut page = Page::new("What virtual machines boot from");
        page.paragraph(match &kernel {
            Ok(kernel) => format!("kernel {}: {}", kernel.release, kernel.image.display()),
            Err(error) => format!("no kernel: {error}"),
        });
        if cached.is_empty() {
            page.paragraph(format!("nothing in {}", cache.display()));
        }
        let row = |Cached { path, bytes }: &Cached| vec![size(*bytes), path.display().to_string()];
        page.rows(&["Size", "File"], cached.iter().map(row).collect());
        page
    };
    forms::print(format, &data, page)?;
    Ok(Exit::Success)
}

/// As people read it.
fn size(bytes: u64) -> String {
    let mib = bytes / (1 << 20);
    if mib == 0 { format!("{} KiB", bytes.div_ceil(1 << 10)) } else { format!("{mib} MiB") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_short() {
        assert_eq!(size(5), "1 KiB");
        assert_eq!(size(3 << 20), "3 MiB");
    }
}
