//! The host's memory, and whether equal memory of guests can be merged.

use std::path::Path;

use tare_memory::host::HostNow;
use tare_memory::{AdvisorSettings, Kernel, Settings};
use tare_model::Refusal;
use tare_model::merging::{MergeRule, Merging};

/// What is found of the host's memory, each as name and finding.
pub fn facts() -> Vec<(String, String)> {
    let mut facts = match HostNow::read() {
        Ok(now) => of_host(&now),
        Err(error) => vec![("memory", error.to_string())],
    };
    let kernel = Kernel::host();
    facts.push(("merging", merging(kernel.refusal(), kernel.opening_refusal())));
    match kernel.settings() {
        Ok(settings) => facts.extend(of_settings(&settings)),
        Err(error) if Path::new("/sys/kernel/mm/ksm").is_dir() => facts.push(("merging now", error.to_string())),
        Err(_) => {}
    }
    facts.into_iter().map(|(name, finding)| (name.to_owned(), finding)).collect()
}

/// Why an arm's memory cannot be merged as it asks, and what would help.
pub fn refusal(merging: &Merging, kernel: &Kernel) -> Option<Refusal> {
    let settings = match kernel.settings() {
        Ok(settings) => settings,
        Err(error) => return Some(Refusal::new(error.to_string(), "see `tare ksm status`")),
    };
    if matches!(merging.rule, MergeRule::Advisor { .. }) && settings.advisor.is_none() {
        return Some(Refusal::new(
            "this kernel has no advisor for merging (Linux 6.8)",
            "use a newer kernel, or another rule",
        ));
    }
    let zero_pages = merging.zero_pages && settings.use_zero_pages.is_none();
    zero_pages.then(|| {
        Refusal::new(
            "this kernel cannot merge empty pages with its own page of zeros (Linux 4.12)",
            "use a newer kernel, or leave out `zero-pages`",
        )
    })
}

fn of_host(now: &HostNow) -> Vec<(&'static str, String)> {
    let swap = match now.swap_total_bytes {
        0 => "none: a host that runs short kills at once; tare's reserve stops before".to_owned(),
        bytes => format!("{}: a scale-up of guests stops as soon as the host uses it", gib(bytes)),
    };
    let pressure = match now.pressure {
        Some(share) => format!("reported by the kernel; {:.1} % of the last 10 s now", share * 100.0),
        None => "not reported by the kernel (CONFIG_PSI, or psi=1 at boot): that stop rule has no effect".to_owned(),
    };
    let memory = format!("{}, {} available", gib(now.total_bytes), gib(now.available_bytes));
    vec![("memory", memory), ("swap", swap), ("memory pressure", pressure)]
}

fn merging(refusal: Option<Refusal>, opening: Option<Refusal>) -> String {
    let risk = "whoever shares merged memory can learn by timing what others hold: off unless a study asks";
    match (refusal, opening) {
        (Some(Refusal { reason, remedy }), _) => format!("not possible: {reason}; remedy: {remedy}"),
        (None, Some(Refusal { reason, remedy })) => {
            format!("possible for virtual machines alone ({reason}; remedy: {remedy}); {risk}")
        }
        (None, None) => format!("possible; {risk}"),
    }
}

fn of_settings(settings: &Settings) -> Vec<(&'static str, String)> {
    let running = match settings.run {
        1 => format!("running, {} pages each {} ms; ", settings.pages_to_scan, settings.sleep_ms),
        _ => "stopped; ".to_owned(),
    };
    let advisor = match &settings.advisor {
        None => "no advisor (Linux 6.8)".to_owned(),
        Some(AdvisorSettings { mode, .. }) => format!("advisor: {mode}"),
    };
    let huge = match settings.huge_pages.as_deref() {
        None => "not in this kernel".to_owned(),
        Some("always") => "always: memory in huge pages is merged only after the kernel has split them".to_owned(),
        Some(word) => word.to_owned(),
    };
    vec![("merging now", running + &advisor), ("huge pages", huge)]
}

/// Bytes as people read them.
fn gib(bytes: u64) -> String {
    format!("{:.1} GiB", bytes as f64 / f64::from(1 << 30))
}

#[cfg(test)]
mod tests {
    use crate::host_memory;
    use crate::registry::{Registry, Shipped};

    use super::*;

    fn of<'a>(facts: &'a [(&str, String)], name: &str) -> &'a str {
        facts.iter().find(|(known, _)| *known == name).map_or("", |(_, finding)| finding)
    }

    #[test]
    fn what_matters_for_overcommit_is_reported() {
        let now = HostNow { total_bytes: 24 << 30, available_bytes: 20 << 30, ..HostNow::default() };
        let facts = of_host(&now);
        assert_eq!(of(&facts, "memory"), "24.0 GiB, 20.0 GiB available");
        assert!(of(&facts, "swap").starts_with("none") && of(&facts, "memory pressure").contains("not reported"));
        let facts = of_host(&HostNow { swap_total_bytes: 1 << 30, pressure: Some(0.25), ..now });
        assert!(of(&facts, "swap").starts_with("1.0 GiB") && of(&facts, "memory pressure").contains("25.0 %"));
    }

    #[test]
    fn merging_is_shown_with_its_remedy() {
        let refused = |reason: &str| Some(Refusal::new(reason, "another kernel"));
        assert!(merging(None, None).starts_with("possible;"));
        assert!(
            merging(refused("no KSM"), refused("no prctl")).starts_with("not possible: no KSM; remedy: another kernel")
        );
        assert!(
            merging(None, refused("no prctl")).starts_with("possible for virtual machines alone (no prctl; remedy:")
        );
        let advisor = AdvisorSettings { mode: "scan-time".into(), ..AdvisorSettings::default() };
        let huge_pages = Some("always".to_owned());
        let set = Settings {
            run: 1,
            pages_to_scan: 100,
            sleep_ms: 20,
            advisor: Some(advisor),
            huge_pages,
            ..Settings::default()
        };
        let facts = of_settings(&set);
        assert_eq!(of(&facts, "merging now"), "running, 100 pages each 20 ms; advisor: scan-time");
        assert!(of(&facts, "huge pages").contains("split"));
        let facts = of_settings(&Settings::default());
        assert_eq!(
            (of(&facts, "merging now"), of(&facts, "huge pages")),
            ("stopped; no advisor (Linux 6.8)", "not in this kernel")
        );
    }

    #[test]
    fn no_rule_is_usable_on_a_kernel_without_merging() {
        let native = Shipped.platform("native", &serde_json::json!({})).unwrap();
        let refused = host_memory::merging_refusal(&*native, &Kernel::at("/nonexistent"));
        assert!(refused.is_some_and(|Refusal { reason, remedy }| reason.contains("KSM") && !remedy.is_empty()));
    }
}
