use tare_model::Span;

use super::*;

fn read(printed: &[&str]) -> Result<Vec<(String, f64)>, HostMetricsError> {
    let mut reading = Reading::default();
    for (at_ns, part) in (0..).zip(printed) {
        reading.take(part.as_bytes(), at_ns)?;
    }
    reading.end(9)?;
    assert!(reading.samples.iter().all(|sample| sample.source == Source::UserCommand));
    Ok(reading.samples.into_iter().map(|sample| (sample.series, sample.value)).collect())
}

#[test]
fn lines_are_figures_however_they_come() {
    let found = read(&["cpu_used_percent 41.5\n\n  pcpu0:util/% 1e2 \r\nmem", "_bytes 7\nlast -0.5"]).unwrap();
    let expected = [("cpu_used_percent", 41.5), ("pcpu0:util/%", 100.0), ("mem_bytes", 7.0), ("last", -0.5)];
    assert_eq!(found, expected.map(|(name, value)| (name.to_owned(), value)));
}

#[test]
fn what_is_no_figure_is_reported_with_its_line() {
    for wrong in ["a b", "a", "a 1 2", "a NaN", "a inf", "a,b 1", "a=1", "1,5 a", "\u{1b}[2J 1"] {
        let error = read(&["fine 1\n\n", wrong, "\n"]).unwrap_err();
        let HostMetricsError::NoFigure { line: 3, text } = &error else { panic!("{wrong}: {error:?}") };
        assert!(!text.contains('\u{1b}') && error.to_string().starts_with("line 3 of what it printed"), "{error}");
    }
    let long = "x".repeat(LINE_BYTES + 1);
    assert_eq!(read(&["fine 1\n", &long]), Err(HostMetricsError::LongLine { line: 2 }));
    let name = "n".repeat(NAME_CHARS);
    assert!(read(&[&format!("{name} 1\n")]).is_ok() && read(&[&format!("{name}n 1\n")]).is_err());
}

#[test]
fn names_figures_and_bytes_are_bounded() {
    let lines: Vec<String> = (0..=NAMES).map(|n| format!("name{n} 1\n")).collect();
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let name = format!("name{NAMES}");
    assert_eq!(read(&lines), Err(HostMetricsError::ManyNames { line: NAMES as u64 + 1, name }));
    let figures = "a 1\n".repeat(1000);
    let many: Vec<&str> = std::iter::repeat_n(figures.as_str(), FIGURES / 1000).collect();
    assert_eq!(read(&many).unwrap().len(), FIGURES);
    let more: Vec<&str> = many.into_iter().chain(["a 1\n"]).collect();
    assert_eq!(read(&more), Err(HostMetricsError::TooMuch));
    let blank = "\n".repeat(1 << 20);
    let blank: Vec<&str> = std::iter::repeat_n(blank.as_str(), 17).collect();
    assert_eq!(read(&blank), Err(HostMetricsError::TooMuch));
}

fn reporting(script: &str, interval: Span) -> Reporting {
    let command = ["sh", "-c", script].map(str::to_owned).to_vec();
    Reporting::start(HostMetrics { command, interval }, &format!("host-metrics-{}", std::process::id()))
}

fn values(of: &[Sample], name: &str) -> Vec<f64> {
    of.iter().filter(|sample| sample.series == name).map(|sample| sample.value).collect()
}

#[test]
fn a_command_that_goes_on_ends_with_its_children_when_the_trial_does() {
    let folder = tempfile::tempdir().unwrap();
    let seen = folder.path().join("seen");
    let script =
        format!("sleep 600 & echo child $!; echo own $$; echo run ${{TARE_RUN##*-}}; touch {}; wait", seen.display());
    let running = reporting(&script, Span::from_secs(1));
    let deadline = Instant::now() + Duration::from_secs(20);
    while !seen.exists() && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(10));
    }
    std::thread::sleep(Duration::from_millis(200));
    let heard = running.end();
    assert_eq!(heard.wrong, None);
    assert!(heard.words.starts_with("3 figures of 3 names") && heard.words.contains("ran once"), "{}", heard.words);
    assert_eq!(values(&heard.samples, "run"), [f64::from(std::process::id())], "it carries the run's id");
    for name in ["own", "child"] {
        let pid = values(&heard.samples, name)[0];
        // A child without its parent is a zombie until its new one looks, and dies a moment after its signal.
        let state = || std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let lives = || !state().is_empty() && !state().contains(") Z ");
        let deadline = Instant::now() + Duration::from_secs(5);
        while lives() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(5));
        }
        assert!(!lives(), "{name}: {}", state());
    }
}

#[test]
fn one_that_ends_runs_again_and_one_that_is_only_dropped_is_gone_too() {
    let running = reporting("echo load 3", Span::from_millis(100));
    std::thread::sleep(Duration::from_millis(900));
    let heard = running.end();
    let count = values(&heard.samples, "load").len();
    assert!((2..=10).contains(&count) && heard.wrong.is_none(), "{count}: {:?}", heard.wrong);
    assert!(heard.samples.windows(2).all(|pair| pair[0].at_ns < pair[1].at_ns));
    let began = Instant::now();
    drop(reporting("trap '' TERM; sleep 600", Span::from_secs(1)));
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
}

#[test]
fn a_failure_is_reported_with_the_command_and_what_came_before_it_is_kept() {
    let failing = |script: &str| {
        let running = reporting(script, Span::from_millis(100));
        std::thread::sleep(Duration::from_millis(700));
        running.end()
    };
    let heard = failing("echo a 1; echo 'no such host' >&2; exit 3 # --password=hunter2");
    let wrong = heard.wrong.unwrap();
    assert!(wrong.contains("ended with code 3; it said: no such host") && !wrong.contains("hunter2"), "{wrong}");
    assert_eq!(values(&heard.samples, "a"), [1.0], "it is not run again");
    let heard = failing("echo a 1; echo b; sleep 600");
    assert!(heard.wrong.unwrap().contains("line 2 of what it printed is no figure: \"b\""));
    assert_eq!(heard.samples.len(), 1);
    let nobody = HostMetrics { command: vec!["/nonexistent/metrics".into()], interval: Span::from_secs(1) };
    let running = Reporting::start(nobody, "r");
    std::thread::sleep(Duration::from_millis(200));
    assert!(running.end().wrong.unwrap().contains("could not be started"));
}
