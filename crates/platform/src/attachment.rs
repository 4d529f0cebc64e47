//! How guests are attached whose data lie in directories of the host's.

use tare_model::layout::{Attachment, StoragePath, Store};
use tare_model::study::Attach;

use crate::data_directory::DataDirectory;

/// By the link that is moved to them so, their data in the directory that a study names, or in tare's own. `device` is as what the guest sees that, where it is not
/// as the host does.
pub(crate) fn in_directory(named: Option<&DataDirectory>, attach: Attach, device: Option<&str>) -> Attachment {
    let path = |holds: &str, store| StoragePath {
        holds: holds.to_owned(),
        device: device.map(Into::into),
        store,
        always: false,
    };
    let in_memory = named.is_some_and(|named| named.in_memory);
    let directory = |named| Store::Directory { named, in_memory };
    let log = named.and_then(|named| named.log_directory.as_ref()).map(|_| path("log", directory(true)));
    let own = std::iter::once(path("data", directory(named.is_some()))).chain(log).collect();
    Attachment { link: attach.link().into(), own, shared: Some(path("data", Store::Kept)) }
}
