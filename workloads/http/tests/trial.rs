//! Whole trials of `http` with services that python3 serves: started, asked, verified, reported.
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::common::{
    self, CONTAINER, expect_code, is_root, least_count as count, least_metric as metric, left_by_runs_into, outcomes,
    ran, stderr, stdout,
};

const PYTHON: &str = "/usr/bin/python3";

/// Whether this host has what serves; tells where it has not.
fn can_serve() -> bool {
    let there = Path::new(PYTHON).exists();
    if !there {
        tare_testkit::skipped(&format!("there is no {PYTHON}, which the services of these tests are written for"));
    }
    there && is_root()
}

/// A folder that the user nobody may read in guests that see this host's files.
fn readable() -> tempfile::TempDir {
    let folder = tempfile::tempdir_in("/var/tmp").unwrap();
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    folder
}

/// A study whose trials take about a second and a half.
fn study(arms: &str, cases: &str) -> String {
    let phases = [("warm-up", "200ms"), ("steady-state", "1s"), ("ramp-down", "50ms")];
    common::study(1, arms, "192MiB", &phases, cases)
}

fn case(name: &str, load: &str, parameters: &str) -> String {
    format!("\n[cases.{name}]\nworkload = \"http\"\nload = {{ {load} }}\nparameters = {{ {parameters} }}\n")
}

const CLOSED: &str = "closed = { clients = 3 }";

#[test]
fn pythons_own_server_is_started_asked_and_verified_on_native_and_container() {
    if !can_serve() {
        return;
    }
    let (folder, pages) = (tempfile::tempdir().unwrap(), readable());
    std::fs::write(pages.path().join("page.txt"), "all is well").unwrap();
    let service = format!(
        "command = [\"{PYTHON}\", \"-m\", \"http.server\", \"{{port}}\", \"--bind\", \"{{address}}\"], directory = \"{}\", \
         requests = [{{ path = \"/page.txt\", weight = 3, expect = {{ contains = \"is well\", bytes = 11 }} }}, \
         {{ path = \"/none\", expect = {{ status = 404 }} }}], ready = \"/\"",
        pages.path().display()
    );
    let several = case("several", CLOSED, &service).replace("\nload", "\nguests = 2\ndrivers = 2\nload");
    let open = "open = { rate = \"60/s\", connections = 4 }";
    let cases =
        case("closed", CLOSED, &service) + &case("open", open, &format!("{service}, connections = \"new\"")) + &several;
    let (out, output) = ran(folder.path(), &study(CONTAINER, &cases));
    expect_code(&output, 0);
    assert_eq!(outcomes(&out), vec!["completed"; 6], "{}", stdout(&output));
    for case in ["closed", "open", "several"] {
        assert!(metric(&out, case, "operations_per_s") > 5.0, "{case}");
        assert_eq!(count(&out, case, "wrong answers"), 0.0, "{case}");
        assert!(count(&out, case, "answered: GET /page.txt") > count(&out, case, "answered: GET /none"), "{case}");
    }
    let rate = metric(&out, "open", "operations_per_s");
    assert!((30.0..90.0).contains(&rate), "{rate} a second");
    let markdown = std::fs::read_to_string(out.join("report.md")).unwrap();
    for words in ["service started as", "service ready after", "service runs as", "nobody", "service: resident at most"]
    {
        assert!(markdown.contains(words), "no {words} in {markdown}");
    }
    assert_eq!(left_by_runs_into(&out), Vec::<String>::new());
}

/// A service that has a wrong answer to every fiftieth request.
const LIAR: &str = r#"
import http.server, os, sys
class Liar(http.server.BaseHTTPRequestHandler):
    asked = 0
    def do_GET(self):
        Liar.asked += 1
        body = b"wrong" if Liar.asked % 50 == 0 else os.environ["ANSWER"].encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *words):
        pass
http.server.ThreadingHTTPServer((sys.argv[1], int(sys.argv[2])), Liar).serve_forever()
"#;

#[test]
fn a_wrong_answer_among_fifty_makes_the_trial_invalid() {
    if !can_serve() {
        return;
    }
    let (folder, programs) = (tempfile::tempdir().unwrap(), readable());
    let liar = programs.path().join("liar.py");
    std::fs::write(&liar, LIAR).unwrap();
    let service = format!(
        "command = [\"{PYTHON}\", \"{}\", \"{{address}}\", \"{{port}}\"], port = 9090, env = {{ ANSWER = \"right\" }}, \
         requests = [{{ path = \"/\", expect = {{ contains = \"right\" }} }}]",
        liar.display()
    );
    let (out, output) = ran(folder.path(), &study("", &case("liar", CLOSED, &service)));
    assert_eq!(outcomes(&out), vec!["invalid"], "{}{}", stdout(&output), stderr(&output));
    let said = stdout(&output) + &stderr(&output) + &common::journal(&out);
    assert!(said.contains("answers were wrong") && said.contains("its body lacks"), "{said}");
}

#[test]
fn a_service_that_does_not_come_to_answer_is_reported_with_what_it_said() {
    if !is_root() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let fails = |parameters: &str, words: &[&str]| {
        let (out, output) = ran(folder.path(), &study("", &case("bad", CLOSED, parameters)));
        assert_ne!(output.status.code(), Some(0), "{}", stdout(&output));
        let said = stdout(&output) + &stderr(&output) + &common::journal(&out);
        assert!(words.iter().all(|word| said.contains(word)), "{words:?} in {said}");
        let _ = std::fs::remove_dir_all(out);
    };
    let ends = "command = [\"/bin/sh\", \"-c\", \"echo no database at {port} >&2; exit 3\"], requests = [\"/\"]";
    fails(ends, &["no database at 8080", "code 3", "see that the service answers GET /"]);
    let silent = "command = [\"/bin/sleep\", \"100\"], requests = [\"/\"], ready-within = \"300ms\"";
    fails(silent, &["it was not ready within 300ms", "ready-within"]);
    fails("command = [\"/no/such/service\"], requests = [\"/\"]", &["/no/such/service", "name a program"]);
    fails(
        "requests = [\"items\"], command = [\"/bin/true\"]",
        &["requests", "`items` is no path", "begin it with a /"],
    );
}
