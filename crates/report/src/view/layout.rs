//! Services and storage paths of a test bed, in words.

use tare_model::layout::{Attachment, Given, Initiator, Layout, Service, ServicePlace, StoragePath, Store, Work};
use tare_model::study::Case;

use super::test_bed::Boxed;

/// What the guests of cases have in them and beside them, each once.
#[derive(Default)]
pub(super) struct Works<'a> {
    services: Vec<&'a Service>,
    given: Vec<&'a Given>,
}

impl<'a> Works<'a> {
    pub(super) fn of(cases: &[&Case], layout: &'a Layout) -> Self {
        let mut all = Self::default();
        for Work { services, data } in cases.iter().flat_map(|case| layout.works(&case.id)) {
            for service in services {
                if !all.services.contains(&service) {
                    all.services.push(service);
                }
            }
            if let Some(given) = data.as_ref().filter(|given| !all.given.contains(given)) {
                all.given.push(given);
            }
        }
        all
    }

    fn named(&self, place: ServicePlace) -> Vec<&'a str> {
        self.services.iter().filter(|service| service.place == place).map(|service| service.what.as_str()).collect()
    }

    /// What serves in each guest, and what it is given.
    pub(super) fn in_guest(&self) -> Vec<String> {
        let services = self.named(ServicePlace::Guest);
        let serves = (!services.is_empty()).then(|| format!("in it: {}", services.join(", ")));
        let given = self.given.iter().map(|given| match given.shared {
            true => format!("data: {}, shared by all guests", given.what),
            false => format!("data: {}, a copy for each guest", given.what),
        });
        serves.into_iter().chain(given).collect()
    }

    /// What stands beside each guest; `cpus` says where.
    pub(super) fn beside(&self, cpus: &str) -> Option<Boxed> {
        let names = self.named(ServicePlace::Beside);
        let data: Vec<&str> = self.services.iter().filter_map(|service| service.data.as_deref()).collect();
        let mut lines = vec![
            "beside each guest, one for each, at an address of its own on the lab's network".to_owned(),
            format!("{cpus}, not in the guest's account"),
        ];
        if !data.is_empty() {
            lines.push(format!("data: {}, in a directory of the host", data.join(", ")));
        }
        (!names.is_empty()).then(|| Boxed { title: names.join(", "), lines, beside: true })
    }

    /// What stands with the driver.
    pub(super) fn with_driver(&self) -> Option<Boxed> {
        let names = self.named(ServicePlace::Driver);
        let lines = vec!["beside the driver, on its CPUs; the guests ask it".to_owned()];
        (!names.is_empty()).then(|| Boxed { title: names.join(", "), lines, beside: true })
    }

    /// What stands on the host that the study names for it; `cpus` says where, if that is the guests' host.
    pub(super) fn on_services_host(&self, cpus: Option<&str>) -> Option<Boxed> {
        let names = self.named(ServicePlace::ServicesHost);
        let asked = "one for each guest, which asks it".to_owned();
        let lines = std::iter::once(asked).chain(cpus.map(|cpus| format!("{cpus}, not in the guest's account")));
        (!names.is_empty()).then(|| Boxed { title: names.join(", "), lines: lines.collect(), beside: true })
    }

    /// How the guests of an arm reach the network, and what their data lie on.
    pub(super) fn paths(&self, attachment: &Attachment) -> Vec<String> {
        let given = |shared| self.given.iter().any(|given| given.shared == shared);
        let own = attachment.own.iter().filter(|path| path.always || given(false)).map(path);
        let shared = attachment.shared.iter().filter(|_| given(true)).map(|shared| match shared.store {
            // Said of its own path, in the same words.
            _ if given(false) && attachment.own.contains(shared) => String::new(),
            _ => format!("shared data: {}", way(shared, true)),
        });
        let none = (!self.given.is_empty() && attachment.shared.is_none()).then(|| "data: on its own disk".to_owned());
        let all = std::iter::once(format!("link: {}", attachment.link)).chain(own).chain(shared).chain(none);
        all.filter(|line| !line.is_empty()).collect()
    }
}

fn path(path: &StoragePath) -> String {
    format!("{}: {}", path.holds, way(path, false))
}

/// The way from the guest to what is stored.
fn way(path: &StoragePath, shared: bool) -> String {
    let store = store(&path.store, shared);
    path.device.as_ref().map_or_else(|| store.clone(), |device| format!("{device} \u{2192} {store}"))
}

fn store(store: &Store, shared: bool) -> String {
    match store {
        Store::Directory { named, in_memory } => {
            let whose = if *named { "a directory of the host that the study names" } else { "a directory of the host" };
            format!("{whose}{}", if *in_memory { ", in memory" } else { "" })
        }
        Store::Kept => "the host's one copy, read-only".to_owned(),
        Store::File { format } if shared => format!("{format} file over the host's one copy"),
        Store::File { format } => format!("{format} file of the host"),
        Store::Device => "block device of the host".to_owned(),
        Store::Unit { san, initiator } => {
            let target = if *san { "unit of the user's iSCSI target" } else { "unit of the lab's iSCSI target" };
            match initiator {
                Initiator::Hypervisor => format!("{target}, logged in to by the hypervisor"),
                Initiator::Guest => format!("{target}, logged in to by the guest over its network card"),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attached(own: Store, shared: Store) -> Attachment {
        let path = |store| StoragePath { holds: "data".into(), device: Some("a disk".into()), store, always: false };
        Attachment { link: "a card".into(), own: vec![path(own)], shared: Some(path(shared)) }
    }

    #[test]
    fn a_path_is_shown_only_where_something_lies_on_it() {
        let file = |format: &str| Store::File { format: format.into() };
        let attachment = attached(file("raw"), file("qcow2"));
        let (own, shared) = (Given::own("a database"), Given::shared("pages"));
        let with = |given: Vec<&Given>| {
            let works = Works { services: Vec::new(), given: given.clone() };
            works.paths(&attachment)[1..].to_vec()
        };
        assert!(with(vec![]).is_empty());
        assert_eq!(with(vec![&own]), ["data: a disk \u{2192} raw file of the host"]);
        assert_eq!(with(vec![&shared]), ["shared data: a disk \u{2192} qcow2 file over the host's one copy"]);
        assert_eq!(with(vec![&own, &shared]).len(), 2);
    }

    #[test]
    fn each_path_has_words_of_its_own_and_second_disks_a_line_more() {
        let unit = |san, initiator| Store::Unit { san, initiator };
        let directory = |named| Store::Directory { named, in_memory: named };
        let (hypervisor, guest) = (Initiator::Hypervisor, Initiator::Guest);
        let stores = [Store::Device, unit(false, hypervisor), unit(true, hypervisor), unit(true, guest), Store::Kept];
        let stores = stores.into_iter().chain([directory(false), directory(true)]);
        let words: std::collections::BTreeSet<String> = stores.map(|own| store(&own, false)).collect();
        assert_eq!(words.len(), 7, "{words:?}");
        let mut attachment = attached(Store::Device, Store::Device);
        attachment.own.push(StoragePath { holds: "log".into(), ..attachment.own[0].clone() });
        let given = Given::own("a database");
        let works = Works { services: Vec::new(), given: vec![&given] };
        assert_eq!(works.paths(&attachment)[2], "log: a disk \u{2192} block device of the host");
    }
}
