//! QEMU's words for the share of the host's root.

use std::path::{Path, PathBuf};

use tare_model::Refusal;

use super::options::Options;
use crate::machine::share::{self, SOCKET, TAG};

/// The file server's program.
pub(super) fn server(options: &Options) -> Result<PathBuf, Refusal> {
    share::server(options.virtiofsd.as_deref())
}

/// QEMU's words. `folder` is the guest's own directory.
pub(super) fn words(folder: &Path, bus: &str) -> Vec<String> {
    let socket = super::command::escaped(&folder.join(SOCKET));
    let backend = format!("socket,id=share,path={socket}");
    let device = format!("vhost-user-fs-{bus},chardev=share,tag={TAG}");
    ["-chardev", &backend, "-device", &device].map(str::to_owned).to_vec()
}
