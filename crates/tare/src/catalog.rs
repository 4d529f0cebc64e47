//! The registries of platforms and workloads, as a study sees them.

use serde_json::Value;
use tare_model::Refusal;
use tare_model::density::TileGuest;
use tare_model::field::FieldError;
use tare_model::guest::GuestSize;
use tare_model::load::LoadModel;
use tare_model::metric::MetricSpec;
use tare_model::{ByteSize, Span};
use tare_study::{Catalog, CatalogEntry};
use tare_workload::Workload;

/// All platforms and workloads of this tare.
#[derive(Debug, Clone, Copy)]
pub struct Registries;

/// A workload with these parameters, to be asked what does not depend on its load.
fn made(name: &str, parameters: &Value) -> Option<Box<dyn Workload>> {
    loaded(name, parameters, &LoadModel::Closed { clients: 1, think_time: Span::ZERO })
}

/// A workload with these parameters under this load, to be asked about itself.
fn loaded(name: &str, parameters: &Value, load: &LoadModel) -> Option<Box<dyn Workload>> {
    (tare_workload::registry::find(name)?.make)(parameters, load).ok()
}

impl Catalog for Registries {
    fn platforms(&self) -> Vec<CatalogEntry> {
        tare_platform::registry::all()
            .iter()
            .map(|entry| CatalogEntry {
                name: entry.name.to_owned(),
                summary: entry.summary.to_owned(),
                schema: (entry.schema)(),
            })
            .collect()
    }

    fn workloads(&self) -> Vec<CatalogEntry> {
        tare_workload::registry::ALL
            .iter()
            .map(|entry| CatalogEntry {
                name: entry.name.to_owned(),
                summary: entry.summary.to_owned(),
                schema: (entry.schema)(),
            })
            .collect()
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

    fn several(&self, workload: &str, parameters: &Value) -> bool {
        made(workload, parameters).is_some_and(|workload| workload.several())
    }

    fn instances(&self, workload: &str, parameters: &Value) -> bool {
        made(workload, parameters).is_some_and(|workload| workload.instances())
    }

    fn repeats(&self, workload: &str, parameters: &Value) -> bool {
        made(workload, parameters).is_some_and(|workload| workload.repeats())
    }

    fn services(&self, workload: &str, parameters: &Value) -> bool {
        // Guests that differ are those of a tile.
        made(workload, parameters).is_some_and(|workload| {
            let guests = u32::try_from(workload.tile().len().max(1)).unwrap_or(u32::MAX);
            (0..guests).any(|index| workload.services(index))
        })
    }

    fn density(&self, workload: &str, parameters: &Value) -> bool {
        made(workload, parameters).is_some_and(|workload| workload.density())
    }

    fn tile(&self, workload: &str, parameters: &Value, guest: &GuestSize) -> Vec<TileGuest> {
        let Some(made) = made(workload, parameters) else { return Vec::new() };
        let names = (0..).zip(made.tile());
        names.map(|(index, name)| TileGuest { name, size: made.size(index, *guest) }).collect()
    }

    fn is_calibrated(&self, workload: &str, parameters: &Value) -> bool {
        made(workload, parameters).is_some_and(|workload| workload.is_calibrated())
    }

    fn touches(&self, workload: &str, parameters: &Value, load: &LoadModel, guest: &GuestSize) -> ByteSize {
        loaded(workload, parameters, load).map_or(guest.memory, |workload| workload.touches(guest))
    }

    fn fits(
        &self,
        workload: &str,
        parameters: &Value,
        load: &LoadModel,
        (guest, instances): (&GuestSize, u32),
    ) -> Result<(), FieldError> {
        loaded(workload, parameters, load).map_or(Ok(()), |workload| workload.fits_of(guest, instances))
    }

    fn merging_refusal(&self, platform: &str, options: &Value) -> Option<Refusal> {
        let entry = tare_platform::registry::find(platform)?;
        (entry.make)(options).ok()?.merging_refusal()
    }

    fn footprint(
        &self,
        workload: &str,
        parameters: &Value,
        load: &LoadModel,
        (guest, instances): (&GuestSize, u32),
    ) -> (ByteSize, ByteSize) {
        let workload = loaded(workload, parameters, load);
        let footprint = workload.map(|workload| workload.footprint_of(guest, instances)).unwrap_or_default();
        (footprint.kept, footprint.guest)
    }

    fn set_up(
        &self,
        workload: &str,
        parameters: &Value,
        load: &LoadModel,
        (guest, instances): (&GuestSize, u32),
    ) -> Span {
        loaded(workload, parameters, load).map_or(Span::ZERO, |workload| workload.set_up(guest, instances))
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

    #[test]
    fn what_finds_its_own_load_is_known_by_its_parameters() {
        let finds = |parameters| Registries.is_calibrated("java", &parameters);
        assert!(finds(json!({ "cpu-share": 0.1 })) && !finds(json!({})));
        assert!(!Registries.is_calibrated("rr", &json!({})));
    }

    #[test]
    fn what_starts_a_server_takes_time_around_its_trials() {
        let guest = GuestSize { cpus: 1, memory: ByteSize(1 << 30) };
        let load = LoadModel::Closed { clients: 20, think_time: Span::ZERO };
        let of = |name| Registries.set_up(name, &json!({}), &load, (&guest, 1));
        for server in ["store", "java", "web-banking", "social"] {
            assert!(of(server) >= Span::from_secs(1), "{server}");
        }
        assert_eq!(of("rr"), Span::ZERO);
    }

    #[test]
    fn what_a_guest_touches_depends_on_its_load() {
        let guest = GuestSize { cpus: 1, memory: ByteSize(3 << 30) };
        let touched = |clients, memory: &str| {
            let load = LoadModel::Closed { clients, think_time: Span::ZERO };
            Registries.touches("java", &json!({ "memory": memory }), &load, &guest).0
        };
        // A data group has 25 MB of live heap, and as many threads touch memory of their own.
        assert!(touched(6, "lazy") > touched(1, "lazy") + 5 * 25_000_000, "{}", touched(6, "lazy"));
        assert_eq!(touched(1, "zeroed"), guest.memory.0);
    }
}
