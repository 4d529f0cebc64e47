//! Bytes and drops of network interfaces, in namespaces too.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use tare_model::sample::Source;

use crate::ProbeError;
use crate::collector::{Catalog, Collector, FileCollector, Pick, Wanted};
use crate::reader::Reader;

/// A network interface to be watched.
///
/// The probe holds the interface's namespace open until it stops: stop it before the namespace must be gone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interface {
    /// Name in its namespace, such as `veth0`.
    pub name: String,
    /// Name in the series `nic_LABEL_rx_bytes` and so on; names repeat across namespaces, labels must not.
    pub label: String,
    /// Its network namespace, such as `/proc/PID/ns/net`; `None` is the probe's own.
    pub namespace: Option<PathBuf>,
}

/// Columns of `/proc/net/dev` after the name (net/core/net-procfs.c).
const COLUMNS: [(&str, usize); 8] = [
    ("rx_bytes", 1),
    ("rx_packets", 2),
    ("rx_error_packets", 3),
    ("rx_dropped_packets", 4),
    ("tx_bytes", 9),
    ("tx_packets", 10),
    ("tx_error_packets", 11),
    ("tx_dropped_packets", 12),
];

impl Interface {
    pub(crate) fn collector(
        &self,
        root: &Path,
        source: &Source,
        catalog: &mut Catalog,
    ) -> Result<Box<dyn Collector>, ProbeError> {
        let refused = |reason: String| ProbeError::Interface { name: self.name.clone(), reason };
        let path = root.join("proc/thread-self/net/dev");
        let file = match &self.namespace {
            None => File::open(&path),
            Some(namespace) => open_in(namespace, &path),
        };
        let reader = Reader::of(file.map_err(|error| refused(error.to_string()))?, &path);
        let wanted: Vec<Wanted> = COLUMNS
            .iter()
            .map(|&(name, column)| {
                let pick = Pick::Cell { key: format!("{}:", self.name), key_column: 0, column };
                (format!("nic_{}_{name}", self.label), pick, 1.0)
            })
            .collect();
        let collector = FileCollector::new(reader, source, wanted, catalog);
        collector
            .map(|collector| Box::new(collector) as _)
            .ok_or_else(|| refused("there is none of that name".to_owned()))
    }
}

/// Opens the list of interfaces of another namespace. The open file stays with that namespace, so a short-lived
/// thread enters it and nothing of the probe has to come back.
fn open_in(namespace: &Path, path: &Path) -> io::Result<File> {
    let thread = std::thread::Builder::new().name("probe-netns".to_owned());
    std::thread::scope(|scope| {
        let opener = thread.spawn_scoped(scope, || {
            move_into_link_name_space(File::open(namespace)?.as_fd(), Some(LinkNameSpaceType::Network))?;
            File::open(path)
        })?;
        opener.join().unwrap_or_else(|_| Err(io::Error::other("the thread that enters the namespace died")))
    })
}
