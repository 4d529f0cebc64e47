//! CPU time, memory and pressure of a control group, seen from the host.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use tare_model::sample::Source;

use crate::ProbeError;
use crate::collector::{Catalog, Collector, FileCollector, Pick, SeriesId, Values, Wanted};
use crate::reader::Reader;
use crate::sampler::Collectors;
use crate::text;

/// A control group to be watched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    /// Where its samples come from; as a rule [`Source::Guest`].
    pub source: Source,
    /// Its directories: the one of version 2, those under version 1's `cpuacct`, `cpu` and `memory`, or both. What is
    /// found in an earlier one is not looked for in a later one.
    pub directories: Vec<PathBuf>,
}

impl Group {
    fn find(&self, file: &str) -> Option<PathBuf> {
        self.directories.iter().map(|dir| dir.join(file)).find(|path| path.is_file())
    }

    /// Opens what there is of the group.
    pub(crate) fn collectors(&self, catalog: &mut Catalog) -> Result<Collectors, ProbeError> {
        let mut collectors = Collectors::default();
        let cpu = self.cpu(catalog).ok_or_else(|| ProbeError::Group {
            name: format!("{:?}", self.source),
            searched: self.directories.clone(),
        })?;
        collectors.together.push(cpu);
        collectors.others.extend(self.throttling(catalog));
        collectors.others.extend(self.memory(catalog));
        for resource in ["cpu", "memory", "io"] {
            if let Some(path) = self.find(&format!("{resource}.pressure")) {
                let wanted = pressure(resource);
                collectors.others.extend(boxed(FileCollector::open(&path, &self.source, wanted, catalog)));
            }
        }
        Ok(collectors)
    }

    /// CPU time: version 2 gives all three figures in one file, version 1 the total and the split in three.
    fn cpu(&self, catalog: &mut Catalog) -> Option<Box<dyn Collector>> {
        for dir in &self.directories {
            let v2 = dir.join("cpu.stat");
            if fs::read_to_string(&v2).is_ok_and(|text| text::value_of(&text, "usage_usec").is_some()) {
                let wanted =
                    [("cpu_total_s", "usage_usec"), ("cpu_user_s", "user_usec"), ("cpu_system_s", "system_usec")];
                let wanted = wanted.map(|(series, key)| (series.to_owned(), Pick::Key(key), 1e-6)).into();
                return boxed(FileCollector::open(&v2, &self.source, wanted, catalog));
            }
            if let Ok(group) = CpuacctCollector::new(dir, &self.source, catalog) {
                return Some(Box::new(group));
            }
        }
        None
    }

    fn throttling(&self, catalog: &mut Catalog) -> Option<Box<dyn Collector>> {
        // Version 1's `cpu` has a cpu.stat too; each kernel writes one of two names, in microseconds or nanoseconds.
        for dir in &self.directories {
            let path = dir.join("cpu.stat");
            let Ok(text) = fs::read_to_string(&path) else { continue };
            for (key, factor) in [("throttled_usec", 1e-6), ("throttled_time", 1e-9)] {
                if text::value_of(&text, key).is_some() {
                    let wanted = vec![
                        ("throttled_s".to_owned(), Pick::Key(key), factor),
                        ("throttled_periods".to_owned(), Pick::Key("nr_throttled"), 1.0),
                    ];
                    return boxed(FileCollector::open(&path, &self.source, wanted, catalog));
                }
            }
        }
        catalog.absent(format!("throttled_s of {:?}: no cpu.stat tells it", self.source));
        None
    }

    fn memory(&self, catalog: &mut Catalog) -> Vec<Box<dyn Collector>> {
        let files: [(&str, &[&str], Pick); 3] = [
            ("memory_bytes", &["memory.current", "memory.usage_in_bytes"], Pick::First),
            ("memory_peak_bytes", &["memory.peak", "memory.max_usage_in_bytes"], Pick::First),
            ("oom_kills", &["memory.events", "memory.oom_control"], Pick::Key("oom_kill")),
        ];
        let mut collectors = Vec::new();
        for (series, names, pick) in files {
            match names.iter().find_map(|name| self.find(name)) {
                Some(path) => collectors.extend(boxed(FileCollector::open(
                    &path,
                    &self.source,
                    vec![(series.to_owned(), pick, 1.0)],
                    catalog,
                ))),
                None => catalog.absent(format!("{series} of {:?}: none of {names:?} is there", self.source)),
            }
        }
        collectors
    }
}

/// Total stall time by resource, as `pressure_RESOURCE_some_s` and `pressure_RESOURCE_full_s`.
pub(crate) fn pressure(resource: &str) -> Vec<Wanted> {
    ["some", "full"].map(|line| (format!("pressure_{resource}_{line}_s"), Pick::Pressure(line), 1e-6)).into()
}

fn boxed(collector: Option<FileCollector>) -> Option<Box<dyn Collector>> {
    collector.map(|collector| Box::new(collector) as Box<dyn Collector>)
}

/// CPU time of a group of version 1. The total is the scheduler's; user and system are counted by ticks and do not add
/// up to it. They are passed on as they are: only over a window can they be stretched to fit without running backwards.
struct CpuacctCollector {
    total: Reader,
    user: Reader,
    system: Reader,
    series: [SeriesId; 3],
}

impl CpuacctCollector {
    fn new(dir: &Path, source: &Source, catalog: &mut Catalog) -> io::Result<Self> {
        let open = |name: &str| Reader::open(&dir.join(name));
        let (total, user, system) = (open("cpuacct.usage")?, open("cpuacct.usage_user")?, open("cpuacct.usage_sys")?);
        let series = ["cpu_total_s", "cpu_user_s", "cpu_system_s"].map(|series| catalog.add(source, series));
        Ok(Self { total, user, system, series })
    }
}

impl Collector for CpuacctCollector {
    fn collect(&mut self, at_ns: u64, values: &mut Values) -> io::Result<()> {
        let seconds = |reader: &mut Reader| Ok::<_, io::Error>(text::first_number(reader.read()?).unwrap_or(0.0) / 1e9);
        let readings = [seconds(&mut self.total)?, seconds(&mut self.user)?, seconds(&mut self.system)?];
        for (series, value) in self.series.into_iter().zip(readings) {
            values.push(at_ns, series, value);
        }
        Ok(())
    }

    fn name(&self) -> String {
        self.total.path().display().to_string()
    }
}
