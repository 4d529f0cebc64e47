//! The registries of platforms and workloads, as a study sees them.

use std::net::IpAddr;

use serde_json::Value;
use tare_model::Refusal;
use tare_model::Span;
use tare_model::field::FieldError;
use tare_model::layout::Attachment;
use tare_model::load::LoadModel;
use tare_model::metric::MetricSpec;
use tare_model::start::Start;
use tare_model::study::Attach;
use tare_model::traits::{Footprint, Traits};
use tare_study::{Catalog, CatalogEntry, WorkloadAsked};
use tare_workload::Workload;

/// All platforms and workloads of this tare.
#[derive(Debug, Clone, Copy)]
pub struct Registries;

/// A workload with these parameters, to be asked what does not depend on its load.
fn made(name: &str, parameters: &Value) -> Option<Box<dyn Workload>> {
    let load = LoadModel::Closed { clients: 1, think_time: Span::ZERO };
    (tare_workload::registry::find(name)?.make)(parameters, &load).ok()
}

/// A workload as a case asks for it, to be asked about itself.
fn asked(of: &WorkloadAsked<'_>) -> Option<Box<dyn Workload>> {
    (tare_workload::registry::find(of.name)?.make)(of.parameters, &of.load).ok()
}

fn listed(name: &str, summary: &str, kinds: Vec<String>, schema: fn() -> Value) -> CatalogEntry {
    CatalogEntry { name: name.to_owned(), summary: summary.to_owned(), kinds, schema: schema() }
}

impl Catalog for Registries {
    fn platforms(&self) -> Vec<CatalogEntry> {
        let kinds = |entry: &tare_platform::registry::Entry| {
            entry.variants.iter().map(|variant| variant.name.to_owned()).collect()
        };
        let all = tare_platform::registry::all().iter();
        all.map(|entry| listed(entry.name, entry.summary, kinds(entry), entry.schema)).collect()
    }

    fn workloads(&self) -> Vec<CatalogEntry> {
        let all = tare_workload::registry::ALL.iter();
        all.map(|entry| listed(entry.name, entry.summary, Vec::new(), entry.schema)).collect()
    }

    fn check_platform(&self, name: &str, options: &Value) -> Result<Value, FieldError> {
        match tare_platform::registry::find(name) {
            Some(entry) => (entry.check_options)(options),
            None => Err(FieldError::new(&[], format!("there is no platform `{name}`"))),
        }
    }

    fn check_workload(&self, name: &str, parameters: &Value, load: &LoadModel) -> Result<Value, FieldError> {
        let entry = tare_workload::registry::find(name)
            .ok_or_else(|| FieldError::new(&[], format!("there is no workload `{name}`")))?;
        let normalised = (entry.normalise)(parameters)?;
        (entry.make)(&normalised, load)?;
        Ok(normalised)
    }

    fn metrics(&self, workload: &str, parameters: &Value) -> Vec<MetricSpec> {
        made(workload, parameters).map(|workload| workload.metrics()).unwrap_or_default()
    }

    fn traits(&self, of: &WorkloadAsked<'_>) -> Traits {
        asked(of).map_or_else(|| Traits::of(of.guest), |workload| workload.traits(&of.guest, of.instances))
    }

    fn fits(&self, of: &WorkloadAsked<'_>) -> Result<(), FieldError> {
        asked(of).map_or(Ok(()), |workload| workload.fits(&of.guest, of.instances))
    }

    fn merging_refusal(&self, platform: &str, options: &Value) -> Option<Refusal> {
        let entry = tare_platform::registry::find(platform)?;
        (entry.make)(options).ok()?.merging_refusal()
    }

    fn ballooning_refusal(&self, platform: &str, options: &Value) -> Option<Refusal> {
        let entry = tare_platform::registry::find(platform)?;
        (entry.make)(options).ok()?.ballooning_refusal()
    }

    fn start_refusal(&self, platform: &str, options: &Value, start: Start) -> Option<Refusal> {
        let entry = tare_platform::registry::find(platform)?;
        let platform = (entry.make)(options).ok()?;
        match start {
            Start::Cold => None,
            Start::Pool(_) => platform.pool_refusal(),
            Start::Snapshot => platform.snapshot_refusal(),
        }
    }

    fn exclusive(&self, platform: &str, options: &Value) -> Vec<(&'static str, String)> {
        let made = tare_platform::registry::find(platform).and_then(|entry| (entry.make)(options).ok());
        made.map(|platform| platform.exclusive()).unwrap_or_default()
    }

    fn machines(&self, platform: &str, options: &Value) -> Option<u32> {
        let entry = tare_platform::registry::find(platform)?;
        (entry.make)(options).ok()?.machines()
    }

    fn limits_guests(&self, platform: &str, options: &Value) -> bool {
        let made = tare_platform::registry::find(platform).and_then(|entry| (entry.make)(options).ok());
        made.is_some_and(|platform| platform.limits_guests())
    }

    fn machine_address(&self, platform: &str, options: &Value) -> Option<IpAddr> {
        let entry = tare_platform::registry::find(platform)?;
        (entry.make)(options).ok()?.machine_address()
    }

    fn attachment(&self, platform: &str, options: &Value, attach: Attach) -> Option<Attachment> {
        let entry = tare_platform::registry::find(platform)?;
        Some((entry.make)(options).ok()?.attachment(attach))
    }

    fn attach_refusal(&self, platform: &str, options: &Value, attach: Attach) -> Option<Refusal> {
        let entry = tare_platform::registry::find(platform)?;
        (entry.make)(options).ok()?.attach_refusal(attach)
    }

    fn footprint(&self, of: &WorkloadAsked<'_>) -> Footprint {
        asked(of).map(|workload| workload.footprint(&of.guest, of.instances)).unwrap_or_default()
    }

    fn is_outside(&self, platform: &str) -> bool {
        tare_platform::registry::is_outside(platform)
    }

    fn reaches_outside(&self, platform: &str, options: &Value) -> bool {
        tare_platform::registry::reaches_outside(platform, options)
    }

    fn start_estimate(&self, platform: &str) -> Span {
        tare_platform::registry::find(platform).map_or(Span::from_secs(1), |entry| entry.start_estimate)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use tare_model::ByteSize;
    use tare_model::guest::GuestSize;

    const GUEST: GuestSize = GuestSize { cpus: 1, memory: ByteSize(3 << 30) };

    fn traits(name: &str, parameters: &Value, clients: u32) -> Traits {
        let load = LoadModel::Closed { clients, think_time: Span::ZERO };
        Registries.traits(&WorkloadAsked { name, parameters, load, guest: GUEST, instances: 1 })
    }

    #[test]
    fn what_finds_its_own_load_is_known_by_its_parameters() {
        let finds = |parameters| traits("java", &parameters, 1).calibrated;
        assert!(finds(json!({ "cpu-share": 0.1 })) && !finds(json!({})));
        assert!(!traits("rr", &json!({}), 1).calibrated);
    }

    #[test]
    fn what_starts_a_server_takes_time_around_its_trials() {
        for server in ["store", "java", "web-banking", "social"] {
            assert!(traits(server, &json!({}), 20).set_up >= Span::from_secs(1), "{server}");
        }
        assert_eq!(traits("rr", &json!({}), 20).set_up, Span::ZERO);
    }

    #[test]
    fn what_a_guest_touches_depends_on_its_load() {
        let touched = |clients, memory: &str| traits("java", &json!({ "memory": memory }), clients).touches().0;
        // A data group has 25 MB of live heap, and as many threads touch memory of their own.
        assert!(touched(6, "lazy") > touched(1, "lazy") + 5 * 25_000_000, "{}", touched(6, "lazy"));
        assert_eq!(touched(1, "zeroed"), GUEST.memory.0);
    }
}
