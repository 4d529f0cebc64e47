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
