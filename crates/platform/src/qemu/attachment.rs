//! How the options attach a guest, and what they put its data on.

use tare_model::layout::{self, Attachment, StoragePath, Store};
use tare_model::study::Attach;

use super::disk_options::{DataDisk, Initiator};
use super::options::{DiskFormat, Options};
use crate::machine::volume::VIRTIO_BLK;
use crate::options::Switch;

/// As the options say, on a network that guests are attached to so.
pub(super) fn attachment(options: &Options, attach: Attach) -> Attachment {
    let disk = options.data_disk.clone().unwrap_or_default();
    let own = path("data", &disk);
    let log = options.log_disk.as_ref().map(|log| path("log", log));
    // Data that nobody writes to are not copied into a file of each guest's.
    let shared = match own.store {
        Store::File { .. } => path("data", &DataDisk { format: DiskFormat::Qcow2, ..disk }),
        _ => own.clone(),
    };
    Attachment { link: link(options, attach), own: std::iter::once(own).chain(log).collect(), shared: Some(shared) }
}

fn link(options: &Options, attach: Attach) -> String {
    if options.network.vfio.is_some() {
        return "network card of the host's, passed through".to_owned();
    }
    let moved = match options.network.vhost {
        Switch::Auto => "frames moved by vhost-net where the host has it",
        Switch::On => "frames moved by vhost-net",
        Switch::Off => "frames moved by the hypervisor",
    };
    let over = if attach == Attach::Bridge { "" } else { ", on a macvtap over the card" };
    format!("virtio-net{over}, {moved}")
}

fn path(holds: &str, disk: &DataDisk) -> StoragePath {
    let store = match (disk.iscsi, &disk.device) {
        (Some(initiator), _) => {
            let by = match initiator {
                Initiator::Hypervisor => layout::Initiator::Hypervisor,
                Initiator::Guest => layout::Initiator::Guest,
            };
            Store::Unit { san: disk.san.is_some(), initiator: by }
        }
        (None, Some(_)) => Store::Device,
        (None, None) => Store::File { format: disk.format.name().to_owned() },
    };
    let device = (disk.iscsi != Some(Initiator::Guest)).then(|| VIRTIO_BLK.to_owned());
    let always = disk.is_always_there() || disk.iscsi.is_some() && disk.san.is_none();
    StoragePath { holds: holds.to_owned(), device, store, always }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn of(options: &Value) -> Attachment {
        attachment(&super::super::options::read(options).unwrap(), Attach::Bridge)
    }

    #[test]
    fn a_path_is_what_the_data_disk_says() {
        let file = |format: &str| Store::File { format: format.to_owned() };
        let unit = |initiator| Store::Unit { san: false, initiator };
        let (hypervisor, guest) = (layout::Initiator::Hypervisor, layout::Initiator::Guest);
        for (disk, store, device, always) in [
            (json!({}), file("raw"), true, false),
            (json!({"format": "qcow2", "size": "1GiB"}), file("qcow2"), true, true),
            (json!({"device": "/dev/sdb", "overwrite": true}), Store::Device, true, true),
            (json!({"iscsi": "hypervisor"}), unit(hypervisor), true, true),
            (json!({"iscsi": "guest"}), unit(guest), false, true),
        ] {
            let Attachment { own, shared, .. } = of(&json!({"data-disk": disk}));
            let [own] = own.try_into().unwrap();
            assert_eq!((&own.store, own.device.is_some(), own.always), (&store, device, always), "{disk}");
            let read_by_all = if matches!(store, Store::File { .. }) { file("qcow2") } else { store };
            assert_eq!(shared.unwrap().store, read_by_all, "{disk}");
        }
        assert_eq!(of(&json!({})).own[0].store, file("raw"));
        let apart = of(&json!({"log-disk": {"format": "qcow2"}})).own;
        let parts: Vec<(&str, &Store)> = apart.iter().map(|path| (path.holds.as_str(), &path.store)).collect();
        assert_eq!(parts, [("data", &file("raw")), ("log", &file("qcow2"))]);
    }

    #[test]
    fn a_link_is_a_card_of_the_machine_s_or_of_the_host_s() {
        assert!(of(&json!({"network": {"vhost": "off"}})).link.contains("by the hypervisor"));
        let vfio = json!({"device": "0000:01:00.1", "mac": "02:00:00:00:00:01", "address": "192.0.2.7/24"});
        assert!(of(&json!({"network": {"vfio": vfio}})).link.contains("passed through"));
    }
}
