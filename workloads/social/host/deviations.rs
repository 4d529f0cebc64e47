//! What differs from the published original.

use tare_model::deviation::Deviation;

use super::memory::Pages;
use super::parameters::{CycleTimes, Parameters};
use crate::jvm::Collector;

/// Stack of a thread as published, bytes (report 003, line 242).
const STACK_BYTES: u64 = 192 << 10;
/// Heaps as published, MiB (line 242).
const HEAPS_MIB: [u64; 2] = [1536, 2048];

/// What differs in a guest with these parameters, instances with heaps of so many bytes, on these pages.
pub(super) fn deviations(parameters: &Parameters, heap: u64, pages: &Pages) -> Vec<Deviation> {
    // Report 003, lines 73, 240, 241, 246 and 250.
    let servers = "Olio with pages by JSP on tc Server 2.0, a JVM of Java 6";
    let here = "tare's own after it, with pages by servlets, on Tomcat and a Java of today";
    let effect = "another CPU cost an operation: figures are not those of the report, ratios between arms may be";
    let mut all = vec![
        Deviation::new(
            "application",
            (servers, here),
            "the published one was made for a server and a Java of its time",
            effect,
        ),
        Deviation::new(
            "database",
            ("Percona Server 5.1 (MySQL)", "PostgreSQL"),
            "it is the database that tare brings along",
            "little: the database is outside the guest that is measured",
        ),
        Deviation::new(
            "file store",
            ("NFS, read from ten disks", "pictures that are loaded are computed where they are asked for"),
            "the files would take 0.7 MB a person",
            "no wait for disks or NFS in the guest: response times are shorter, CPU is less",
        ),
    ];
    if !pages.large {
        let effect = "more misses of the address cache: more CPU an operation";
        all.push(Deviation::new("large pages", ("heaps lie in them", "heaps do not"), pages.why.clone(), effect));
    }
    all.extend(asked(parameters, heap));
    all
}

/// What the study's parameters ask otherwise.
fn asked(parameters: &Parameters, heap: u64) -> Vec<Deviation> {
    let mut all = Vec::new();
    let mut differs = |what: &str, published: &str, here: String, effect: &str| {
        all.push(Deviation::new(what, (published, here), "the study asks for it", effect));
    };
    if !HEAPS_MIB.contains(&(heap >> 20)) {
        let here = format!("{} MiB", heap >> 20);
        differs("heap", "1536 MiB with 1 CPU, 2048 MiB with 2", here, "garbage is collected at another pace");
    }
    if parameters.java.stack.0 != STACK_BYTES {
        differs(
            "stack of a thread",
            "192 KiB",
            parameters.java.stack.to_string(),
            "threads take another amount of memory",
        );
    }
    if parameters.java.collector != Collector::Default || !parameters.java.flags.is_empty() {
        let here = format!("collector {:?}, {}", parameters.java.collector, parameters.java.flags.join(" "));
        differs("options of the JVM", "heap, stack and large pages alone", here, "as these options do");
    }
    if parameters.cycle != CycleTimes::default() {
        let here = format!("mean {}, at most {}", parameters.cycle.mean, parameters.cycle.most);
        differs(
            "cycle times",
            "mean 5 s, at most 25 s",
            here,
            "a user is another load: numbers of users cannot be compared",
        );
    }
    if parameters.prime.operations > 0 {
        let here = format!("{} operations before users come", parameters.prime.operations);
        differs("priming", "none", here, "code is compiled when measuring begins: less CPU at small loads");
    }
    if parameters.file_delay.ns > 0 {
        let here = format!("waits {} before each answer", parameters.file_delay);
        differs("delay of the file store", "none is stated", here, "longer response times");
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_differs_is_listed() {
        let names = |parameters: &Parameters, heap: u64, large: bool| -> Vec<String> {
            let pages = Pages { large, why: "none are free".to_owned() };
            deviations(parameters, heap << 20, &pages).into_iter().map(|own| own.what).collect()
        };
        let always = ["application", "database", "file store"];
        let published = Parameters::default();
        assert_eq!(names(&published, 1536, true), always);
        let mut other = Parameters::default();
        (other.prime.operations, other.java.flags) = (10, vec!["-XX:-UseJVMCICompiler".to_owned()]);
        let all = [&always[..], &["large pages", "heap", "options of the JVM", "priming"]].concat();
        assert_eq!(names(&other, 256, false), all);
    }
}
