#![allow(clippy::unwrap_used)]
use super::*;
use crate::jvm::Collector;
use tare_model::ByteSize;

const LISTEN: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(198, 18, 0, 7));

fn line(parameters: &Parameters, index: u32) -> String {
    let inside = Inside { program: "/data/runtime/bin/java".into(), jar: "/data/tare-java.jar".into() };
    command(parameters, 6, index, &inside, LISTEN).join(" ")
}

#[test]
fn the_command_line_has_what_was_asked_and_the_studys_own_options_last() {
    let plain = line(&Parameters::default(), 0);
    assert_eq!(
        plain,
        "/data/runtime/bin/java -Xmx1587200k -Xshare:auto -XX:+ExitOnOutOfMemoryError -XX:-UsePerfData -jar \
         /data/tare-java.jar serve --groups 6 --listen 198.18.0.7:7117 --seed 1"
    );
    let all = Parameters {
        heap: ByteSize(1 << 30),
        collector: Collector::G1,
        pre_touch: true,
        string_deduplication: true,
        class_data_sharing: false,
        huge_pages: true,
        options: vec!["-Xss512k".into(), "-Dx=y".into()],
        ..Parameters::default()
    };
    assert_eq!(
        line(&all, 3),
        "/data/runtime/bin/java -Xmx1048576k -Xms1048576k -XX:+AlwaysPreTouch -XX:+UseG1GC -XX:+UseStringDeduplication \
         -XX:+UseTransparentHugePages -Xshare:off -XX:+ExitOnOutOfMemoryError -XX:-UsePerfData -Xss512k -Dx=y -jar \
         /data/tare-java.jar serve --groups 6 --listen 198.18.0.7:7117 --seed 4"
    );
    for (collector, option) in [(Collector::Serial, "-XX:+UseSerialGC"), (Collector::Parallel, "-XX:+UseParallelGC")] {
        assert!(line(&Parameters { collector, ..Parameters::default() }, 0).contains(option));
    }
}

#[test]
fn data_are_the_same_in_every_guest_or_not() {
    let same = Parameters { data: Data::Same, ..Parameters::default() };
    assert_eq!(line(&same, 0), line(&same, 31));
    let (one, other) = (line(&Parameters::default(), 0), line(&Parameters::default(), 1));
    assert_ne!(one, other);
    assert_eq!(in_every_guest(&one), in_every_guest(&other));
    assert!(in_every_guest(&one).ends_with("tare-java.jar serve --groups 6"), "{one}");
}

#[test]
fn an_application_is_ready_when_it_says_so_with_its_live_heap() {
    assert_eq!(readiness(b"loading\n"), None);
    assert_eq!(readiness(b"listening 0.0.0.0:7117 groups=6 live_heap_bytes=12"), None, "the line may go on");
    assert_eq!(readiness(b"loading\nlistening 0.0.0.0:7117 groups=6 live_heap_bytes=123\n"), Some(Some(123)));
    assert_eq!(readiness(b"listening 0.0.0.0:7117\nmore"), Some(None));
}

fn ended(code: Option<i32>, signal: Option<i32>, stderr: &str) -> Look {
    let ended = ExecResult {
        code,
        signal,
        timed_out: false,
        wall_ns: 1,
        stdout: Vec::new(),
        stderr: stderr.into(),
        dropped_bytes: 0,
    };
    Look { stdout: b"listening x\n".to_vec(), stderr: Vec::new(), ended: Some(ended), resident_peak_bytes: None }
}

#[test]
fn an_application_that_is_gone_says_why_and_that_its_guest_is_lost() {
    let killed = gone(&ended(None, Some(9), "")).unwrap();
    assert!(killed.lost && killed.why.contains("signal 9") && killed.remedy.contains("memory"), "{killed}");
    let out = gone(&ended(Some(3), None, "Terminating due to java.lang.OutOfMemoryError: Java heap space")).unwrap();
    assert!(out.lost && out.why.contains("code 3") && out.why.contains("Java heap space"), "{out}");
    let there = Look { ended: None, ..ended(None, None, "") };
    assert!(gone(&there).is_none());
    assert!(WorkloadError::from(killed).guest_lost());
}

#[test]
fn an_application_that_does_not_start_is_lost_only_for_memory() {
    let failed = |seen: &Look| not_started(seen, seen.ended.as_ref().unwrap(), "java -Xnope");
    let option = failed(&ended(Some(1), None, "Picked up JAVA_TOOL_OPTIONS: \nUnrecognized option: -Xnope"));
    assert!(!option.lost && option.why.contains("Unrecognized option"), "{option}");
    assert!(!option.why.contains("Picked up") && option.tried.contains("java -Xnope"), "{option}");
    assert!(failed(&ended(None, Some(9), "")).lost);
    assert!(failed(&ended(Some(1), None, "There is insufficient memory for the Java Runtime")).lost);
    assert!(failed(&ended(None, None, "")).why.contains("no known way"));
}
