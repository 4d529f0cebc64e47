//! Whole trials of `kv` with real servers: filled, driven, verified, reported.
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::common::{
    self, CONTAINER, expect_code, is_root, least_count as count, least_metric as metric, left_by_runs_into, outcomes,
    ran, stderr, stdout,
};

/// Whether this host has a server's program; tells where it has not.
fn has(program: &str) -> bool {
    let there = Path::new(program).exists();
    if !there {
        tare_testkit::skipped(&format!("there is no {program}: `make platforms` installs it"));
    }
    there
}

const REDIS: &str = "/usr/bin/redis-server";
const MEMCACHED: &str = "/usr/bin/memcached";

/// One case of a second and a half a trial.
fn study(arms: &str, cases: &str) -> String {
    let phases = [("warm-up", "300ms"), ("steady-state", "1s"), ("ramp-down", "100ms")];
    common::study(1, arms, "192MiB", &phases, cases)
}

fn case(name: &str, load: &str, parameters: &str) -> String {
    format!("\n[cases.{name}]\nworkload = \"kv\"\nload = {{ {load} }}\nparameters = {{ {parameters} }}\n")
}

const CLOSED: &str = "closed = { clients = 3 }";

#[test]
fn redis_and_memcached_are_filled_driven_and_verified_on_native_and_container() {
    if !(is_root() && has(REDIS) && has(MEMCACHED)) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let cases = case("redis", CLOSED, "keys = 5000, value-size = \"64B\", value-size-max = \"2KiB\"")
        + &case("memcached", CLOSED, "server = \"memcached\", keys = 5000, depth = 8, threads = 2")
        + &case(
            "rate",
            "open = { rate = \"2000/s\", connections = 4 }",
            "keys = 5000, depth = 4, popularity = { zipf = { exponent = 0.99 } }",
        );
    let (out, output) = ran(folder.path(), &study(CONTAINER, &cases));
    expect_code(&output, 0);
    assert_eq!(outcomes(&out), vec!["completed"; 6], "{}", stdout(&output));
    for case in ["redis", "memcached", "rate"] {
        assert!(metric(&out, case, "operations_per_s") > 100.0, "{case}");
        assert_eq!(metric(&out, case, "hit_share"), 1.0, "{case}");
        let (gets, sets) = (count(&out, case, "gets"), count(&out, case, "sets"));
        let share = gets / (gets + sets);
        assert!((0.8..0.97).contains(&share), "{case}: {gets} GETs and {sets} SETs");
        assert!(count(&out, case, "bytes") > 100.0 * sets, "{case}");
    }
    // In an open loop requests are offered, not pipelines.
    let rate = metric(&out, "rate", "operations_per_s");
    assert!((1_200.0..2_600.0).contains(&rate), "{rate} a second");
    assert!(count(&out, "rate", "sent more than 1 ms late") >= 0.0);
    assert!(stdout(&output).contains("requests"), "{}", stdout(&output));
    let markdown = std::fs::read_to_string(out.join("report.md")).unwrap();
    for words in ["server version", "server maxmemory-policy", "noeviction", "server maxbytes", "keys set and read in"]
    {
        assert!(markdown.contains(words), "no {words} in {markdown}");
    }
    assert_eq!(left_by_runs_into(&out), Vec::<String>::new());
}

#[test]
fn two_guests_with_two_drivers_each_have_servers_of_their_own_and_a_full_one_drops_keys_where_it_may() {
    if !(is_root() && has(REDIS)) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let several = case("several", CLOSED, "keys = 2000").replace("\nload", "\nguests = 2\ndrivers = 2\nload");
    let full = case(
        "full",
        CLOSED,
        "memory = \"8MiB\", eviction = true, keys = 20000, value-size = \"1KiB\", gets = 50, depth = 16",
    );
    let (out, output) = ran(folder.path(), &study("", &(several + &full)));
    expect_code(&output, 0);
    assert_eq!(outcomes(&out), vec!["completed"; 2], "{}", stdout(&output));
    assert!(metric(&out, "full", "hit_share") < 0.9, "a third of the keys fit");
    assert!(count(&out, "full", "misses") > 0.0 && count(&out, "full", "server: keys dropped") > 0.0);
}

/// A server that speaks RESP, counts and keeps as it should, and gives a GET in a thousand the value of another key.
const LIAR: &str = r#"#!/usr/bin/env python3
import collections, socketserver, sys
if sys.argv[1:] == ["--version"]:
    print("Redis server v=0.0.0 liar")
    sys.exit(0)
values, counts = {}, collections.Counter()
class Liar(socketserver.StreamRequestHandler):
    def words(self):
        line = self.rfile.readline()
        if not line.startswith(b"*"):
            return line.split()
        words = []
        for _ in range(int(line[1:])):
            size = int(self.rfile.readline()[1:])
            words.append(self.rfile.read(size))
            self.rfile.read(2)
        return words
    def handle(self):
        while words := self.words():
            self.answer(words[0], words[1:])
    def bulk(self, text):
        self.wfile.write(b"$%d\r\n%s\r\n" % (len(text), text))
    def answer(self, verb, words):
        counts[verb] += 1
        if verb == b"PING":
            self.wfile.write(b"+PONG\r\n")
        elif verb == b"SET":
            values[words[0]] = words[1]
            self.wfile.write(b"+OK\r\n")
        elif verb == b"GET":
            key = next(iter(values)) if counts[verb] > 1000 and counts[verb] % 1000 == 7 else words[0]
            self.bulk(values[key])
        elif verb == b"INFO":
            info = "cmdstat_get:calls=%d\r\ncmdstat_set:calls=%d\r\ndb0:keys=%d" % (counts[b"GET"], counts[b"SET"], len(values))
            self.bulk(info.encode())
        else:
            self.wfile.write(b"*0\r\n")
class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = daemon_threads = True
at = dict(zip(sys.argv[1:], sys.argv[2:]))
Server((at["--bind"], int(at["--port"])), Liar).serve_forever()
"#;

#[test]
fn a_server_that_gives_the_value_of_another_key_makes_the_trial_invalid() {
    if !(is_root() && has("/usr/bin/python3")) {
        return;
    }
    let folder = tempfile::tempdir_in("/var/tmp").unwrap();
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let liar = folder.path().join("liar");
    std::fs::write(&liar, LIAR).unwrap();
    std::fs::set_permissions(&liar, std::fs::Permissions::from_mode(0o755)).unwrap();
    let parameters = format!("program = \"{}\", keys = 200", liar.display());
    let (out, output) = ran(folder.path(), &study("", &case("liar", CLOSED, &parameters)));
    assert_eq!(outcomes(&out), vec!["invalid"], "{}{}", stdout(&output), stderr(&output));
    let said = stdout(&output) + &stderr(&output) + &std::fs::read_to_string(out.join("journal.jsonl")).unwrap();
    assert!(said.contains("no value of this key"), "{said}");
}

#[test]
fn what_cannot_work_is_refused_with_the_reason() {
    if !is_root() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let refused = |parameters: &str, words: &[&str]| {
        let (out, output) = ran(folder.path(), &study("", &case("bad", CLOSED, parameters)));
        assert_ne!(output.status.code(), Some(0), "{}", stdout(&output));
        let said = stderr(&output);
        assert!(words.iter().all(|word| said.contains(word)), "{words:?} in {said}");
        let _ = std::fs::remove_dir_all(out);
    };
    refused("program = \"/no/such/server\"", &["/no/such/server", "make platforms"]);
    refused("program = \"/bin/false\"", &["/bin/false", "does not run"]);
    refused("memory = \"1GiB\"", &["memory", "192 MiB"]);
    refused("keys = 0, gets = 101", &["is not between 1", "gets"]);
    refused("pipeline = 4", &["pipeline"]);
}
