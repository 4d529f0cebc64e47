//! What differs from the published original, report 000.

use tare_model::ByteSize;
use tare_model::deviation::Deviation;
use tare_model::hold::GuestMemory;

use super::parameters::Parameters;
use crate::jvm::Collector;

/// Heap as published, bytes: -Xmx1550m (line 341).
const HEAP: ByteSize = ByteSize(1550 << 20);
/// Data groups as published (line 41).
const GROUPS: u32 = 6;
/// Share of one guest's CPU to which the published load was throttled (line 41).
const CPU_SHARE: std::ops::RangeInclusive<f64> = 0.5..=0.6;

/// What differs with these parameters and so many data groups.
pub(super) fn deviations(parameters: &Parameters, groups: u32) -> Vec<Deviation> {
    let pair = ("a custom Java benchmark of the testers", "tare's own after its description");
    let effect = "another cost an operation: operations a second are not those of the report, numbers of guests may be";
    let mut all = vec![Deviation::new("application", pair, "the published one was not given out", effect)];
    let (name, windows) = ("guest's system", "Windows Server 2008, 32 bit, which writes zeros to its memory at start");
    // Lines 21 and 335.
    let linux = "a Linux guest with a 64-bit Java of today";
    all.push(if parameters.memory == GuestMemory::Zeroed {
        let here = format!("{linux}; Windows is modelled by writing zeros to all of its memory");
        let effect =
            "zeros merge as those of Windows did; the systems' own pages are others, and fewer of them are equal";
        Deviation::new(name, (windows, here), "tare makes no guests of Windows", effect)
    } else {
        let here = format!("{linux}; memory is held as `{}` asks", said(parameters.memory));
        let effect = "another part of the memory is equal among guests: another number of them fits";
        Deviation::new(name, (windows, here), "tare makes no guests of Windows, and the study models none", effect)
    });
    if parameters.cpu_share.is_some() {
        let here = "starts of operations are fixed in advance";
        let why = "with think time a slow guest asks for less";
        let effect = "where CPU is short, response times grow, and operations are late or given up";
        all.push(Deviation::new("throttle", ("throttled, by think time as the report is read", here), why, effect));
    }
    all.extend(asked(parameters, groups));
    all
}

/// What the study's parameters ask otherwise.
fn asked(parameters: &Parameters, groups: u32) -> Vec<Deviation> {
    let mut all = Vec::new();
    let mut differs = |what: &str, published: &str, here: String, effect: &str| {
        all.push(Deviation::new(what, (published, here), "the study asks for it", effect));
    };
    if parameters.heap != HEAP {
        differs("heap", "1550 MB", parameters.heap.to_string(), "another part of the guest's memory is touched");
    }
    if groups != GROUPS {
        differs(
            "data groups",
            "6",
            groups.to_string(),
            "another number of users, and 25 MB more or less of live data each",
        );
    }
    if !parameters.cpu_share.is_some_and(|share| CPU_SHARE.contains(&share)) {
        let here = parameters.cpu_share.map_or("what the load says".to_owned(), |share| format!("{} %", share * 100.0));
        differs("CPU of one guest alone", "50 to 60 %", here, "CPU runs out at another number of guests");
    }
    let own_way = Parameters {
        memory: parameters.memory,
        heap: parameters.heap,
        cpu_share: parameters.cpu_share,
        room: parameters.room,
        ..Parameters::default()
    };
    if *parameters != own_way {
        let mut here: Vec<String> = parameters.options.clone();
        here.extend(
            (parameters.collector != Collector::Default).then(|| format!("collector {:?}", parameters.collector)),
        );
        here.push("see the case's parameters".to_owned());
        differs("options of the JVM", "the default settings", here.join(", "), "as these options do");
    }
    all
}

/// The memory of a guest as the study writes it.
fn said(memory: GuestMemory) -> String {
    serde_json::to_value(memory).ok().and_then(|said| said.as_str().map(str::to_owned)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_differs_is_listed_and_windows_is_modelled() {
        let published = Parameters { memory: GuestMemory::Zeroed, cpu_share: Some(0.55), ..Parameters::default() };
        let all = deviations(&published, 6);
        assert_eq!(
            all.iter().map(|own| own.what.as_str()).collect::<Vec<_>>(),
            ["application", "guest's system", "throttle"]
        );
        assert!(all[1].here.contains("Windows is modelled"), "{all:?}");
        let other = Parameters { heap: ByteSize(256 << 20), pre_touch: true, ..Parameters::default() };
        let all = deviations(&other, 2);
        assert!(all[1].here.ends_with("held as `lazy` asks"), "{all:?}");
        let names: Vec<&str> = all[2..].iter().map(|own| own.what.as_str()).collect();
        assert_eq!(names, ["heap", "data groups", "CPU of one guest alone", "options of the JVM"]);
    }
}
