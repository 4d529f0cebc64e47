//! How the options attach a guest, and what they put its data on.

use tare_model::layout::{self, Attachment, StoragePath, Store};

use super::options::{DiskFormat, Options};
use crate::machine::volume::VIRTIO_BLK;

/// As the options say.
pub(super) fn attachment(options: &Options) -> Attachment {
    if options.domain.is_some() {
        return Attachment::by("the domain's own network");
    }
    let disk = &options.data_disk;
    let path = |format: DiskFormat| {
        let (device, store) = match disk.iscsi {
            Some(_) => (None, Store::Unit { san: false, initiator: layout::Initiator::Guest }),
            None => (Some(VIRTIO_BLK.to_owned()), Store::File { format: format.name().to_owned() }),
        };
        StoragePath { holds: "data".to_owned(), device, store, always: false }
    };
    // Data that nobody writes to are not copied into a file of each guest's.
    let (own, shared) = (vec![path(disk.format)], Some(path(DiskFormat::Qcow2)));
    Attachment { link: format!("network card of the model {}", options.network.model), own, shared }
}
