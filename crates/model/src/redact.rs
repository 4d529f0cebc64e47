//! Taking secrets, and the names of machines and people, out of what is written and shown.
//!
//! Two ways are used together. What stands in a field that holds a secret by its name, such as every value of an `env` table, is replaced
//! whole. And every other text is searched for the secrets and names that are known, wherever they came from.

mod forms;

use serde_json::Value;

use crate::deviation::Deviation;
use crate::environment::{Environment, Machine};
use crate::plan::Plan;
use crate::sample::Source;
use crate::study::Study;
use crate::trial::{Outcome, TrialRecord};

use forms::{decoded, encoded, secrets_in};
pub use forms::{masked, masked_source};

/// What stands in the place of what was taken out.
pub const REDACTED: &str = "[redacted]";

/// Shorter texts are replaced only where they are a whole field: in a text they would be found everywhere.
const SHORTEST_CHARS: usize = 4;
/// The same of names, which are replaced only where they are whole words.
const SHORTEST_NAME_CHARS: usize = 3;
/// Words that make the name of a secret with a separator or without: `api-key`, `apikey`.
const SECRET_ENDS: [&str; 3] = ["apikey", "accesskey", "privatekey"];

/// A field whose name has one of these words in it holds a secret.
const SECRET_WORDS: [&str; 8] =
    ["password", "passwd", "passphrase", "secret", "token", "credential", "credentials", "pgpassword"];
/// A field of this name is a table of which every value is a secret.
const SECRET_TABLE: &str = "env";
/// Fields of platforms that name a machine or a person.
const IDENTITY_FIELDS: [&str; 12] = [
    "host", "user", "address", "listen", "identity", "host-key", "serial", "portal", "config", "existing", "vm", "url",
];
/// Names that tell nothing about anybody: in a text they are words more often than names.
const COMMON_NAMES: [&str; 16] = [
    "root",
    "postgres",
    "localhost",
    "guest",
    "{guest}",
    "host",
    "admin",
    "user",
    "test",
    "linux",
    "debian",
    "ubuntu",
    "127.0.0.1",
    "0.0.0.0",
    "nobody",
    "tare",
];

/// Knows the secrets of a study, and the names of machines and people, and takes them out of texts.
#[derive(Clone, Default)]
pub struct Redactor {
    secrets: Vec<String>,
    names: Vec<String>,
    /// Whether names are taken out; secrets always are.
    takes_names: bool,
}

impl std::fmt::Debug for Redactor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Redactor({} secrets, {} names)", self.secrets.len(), self.names.len())
    }
}

impl Redactor {
    /// One that knows what a study itself holds. With `names`, the names of machines and people are taken out too.
    pub fn of(study: &Study, names: bool) -> Self {
        let mut redactor = Self { takes_names: names, ..Self::default() };
        for arm in &study.arms {
            redactor.learn(&arm.options, Within::Platform);
        }
        for host in &study.hosts {
            redactor.learn(&host.options, Within::Platform);
        }
        for case in &study.cases {
            redactor.learn(&case.parameters, Within::Workload);
        }
        redactor
    }

    /// The same, that takes out names too.
    #[must_use]
    pub fn taking_names(mut self) -> Self {
        self.takes_names = true;
        self
    }

    /// Adds a secret that is known from elsewhere, in the forms in which it may be shown.
    pub fn add_secret(&mut self, secret: &str) {
        for found in secrets_in(secret) {
            if found.secret.len() < secret.len() {
                self.add_secret(found.secret);
            }
            found.names.into_iter().for_each(|name| self.add_name(name));
        }
        let lines = secret.lines().filter(|line| line.chars().count() >= 2 * SHORTEST_CHARS);
        for form in std::iter::once(secret).chain(lines) {
            let escaped = Value::from(form).to_string();
            let debugged = format!("{form:?}");
            for form in [form, &decoded(form), &encoded(form), escaped.trim_matches('"'), debugged.trim_matches('"')] {
                add(&mut self.secrets, form, SHORTEST_CHARS);
            }
        }
    }

    /// Adds the name of a machine or a person.
    pub fn add_name(&mut self, name: &str) {
        let first = name.split('.').next().filter(|first| first.parse::<u8>().is_err());
        for name in [Some(name), first].into_iter().flatten() {
            if !COMMON_NAMES.contains(&name.to_ascii_lowercase().as_str()) {
                add(&mut self.names, name, SHORTEST_NAME_CHARS);
            }
        }
    }

    /// The text without what is known.
    pub fn text(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for secret in &self.secrets {
            if text.contains(secret.as_str()) {
                text = text.replace(secret.as_str(), REDACTED);
            }
        }
        if self.takes_names {
            for name in &self.names {
                text = without_word(&text, name);
            }
        }
        text
    }

    /// The same, in place.
    pub fn clean(&self, text: &mut String) {
        let cleaned = self.text(text);
        if cleaned != *text {
            *text = cleaned;
        }
    }

    /// The plan as it is written and shown.
    #[must_use]
    pub fn plan(&self, plan: &Plan) -> Plan {
        let mut plan = plan.clone();
        plan.study = self.study(&plan.study);
        plan.differences.iter_mut().for_each(|text| self.clean(text));
        self.clean(&mut plan.cpus.note);
        for left in &mut plan.left_out {
            [&mut left.label, &mut left.reason, &mut left.remedy].into_iter().for_each(|text| self.clean(text));
        }
        plan
    }

    /// The study as it is written and shown. Ids stay: they are what trials are known by.
    #[must_use]
    pub fn study(&self, study: &Study) -> Study {
        let mut study = study.clone();
        self.clean(&mut study.question);
        let rows = study.original.iter_mut().flat_map(|original| &mut original.deviations);
        rows.flat_map(Deviation::texts_mut).for_each(|text| self.clean(text));
        study.trust_domain.iter_mut().for_each(|text| self.clean(text));
        if let Some(wire) = study.lab.wire.as_mut().filter(|_| self.takes_names) {
            wire.addresses = None;
        }
        for arm in &mut study.arms {
            self.clean(&mut arm.label);
            self.fields(&mut arm.options, Within::Platform, Holds::Anything);
        }
        for host in &mut study.hosts {
            self.fields(&mut host.options, Within::Platform, Holds::Anything);
        }
        for case in &mut study.cases {
            self.clean(&mut case.label);
            self.fields(&mut case.parameters, Within::Workload, Holds::Anything);
        }
        study
    }

    /// A text or number of a study file as it is written, by the keys that lead to it from the root of the file.
    pub fn written(&self, path: &[String], value: &Value) -> Value {
        let within = match path.first().map(String::as_str) {
            Some("arms" | "hosts") => Within::Platform,
            _ => Within::Workload,
        };
        let holds = path.iter().skip(1).fold(Holds::Anything, |holds, key| holds.inside(key, within));
        let mut value = value.clone();
        let is_port = within == Within::Platform && path.last().is_some_and(|key| key == "port");
        if is_port && self.takes_names {
            REDACTED.into()
        } else {
            self.fields(&mut value, within, holds);
            value
        }
    }

    /// The environment as it is written.
    #[must_use]
    pub fn environment(&self, mut environment: Environment) -> Environment {
        environment.each_text(|text| self.clean(text));
        environment
    }

    /// A machine as it is written.
    #[must_use]
    pub fn machine(&self, machine: &Machine) -> Machine {
        let mut machine = machine.clone();
        machine.each_text(|text| self.clean(text));
        machine
    }

    /// The trial as it is written.
    #[must_use]
    pub fn trial(&self, record: &TrialRecord) -> TrialRecord {
        let mut record = record.clone();
        match &mut record.outcome {
            Outcome::Invalid { reason } | Outcome::Failed { reason, .. } => self.clean(reason),
            Outcome::Completed(measurement) => {
                if let Some(scale_up) = &mut measurement.scale_up {
                    self.clean(&mut scale_up.stopped.detail);
                    scale_up
                        .levels
                        .iter_mut()
                        .filter_map(|level| level.failed.as_mut())
                        .for_each(|why| self.clean(why));
                }
                if let Some(search) = &mut measurement.search {
                    self.clean(&mut search.ended);
                    search.probes.iter_mut().filter_map(|probe| probe.failed.as_mut()).for_each(|why| self.clean(why));
                }
            }
        }
        for row in &mut record.parity {
            self.clean(&mut row.asked);
            self.clean(&mut row.note);
            row.granted.iter_mut().for_each(|text| self.clean(text));
        }
        record.metrics.iter_mut().for_each(|metric| self.clean(&mut metric.label));
        record.flags.iter_mut().for_each(|flag| self.clean(&mut flag.detail));
        record.deviations.iter_mut().flat_map(Deviation::texts_mut).for_each(|text| self.clean(text));
        record.facts.values_mut().for_each(|text| self.clean(text));
        let by_command = record.samples.iter_mut().filter(|sample| sample.source == Source::UserCommand);
        by_command.for_each(|sample| self.clean(&mut sample.series));
        record
    }

    /// Takes in what a platform's options or a workload's parameters hold.
    fn learn(&mut self, value: &Value, within: Within) {
        walk(value, within, Holds::Anything, &mut |text, holds| {
            match holds {
                Holds::Secret => self.add_secret(text),
                Holds::Name => self.add_name(text),
                Holds::Anything => {}
            }
            for found in secrets_in(text) {
                self.add_secret(found.secret);
                found.names.into_iter().for_each(|name| self.add_name(name));
            }
        });
    }

    fn fields(&self, value: &mut Value, within: Within, holds: Holds) {
        match value {
            Value::Object(map) => {
                let names_host = map.contains_key("host");
                for (key, inner) in map.iter_mut() {
                    if key == "port" && names_host && within == Within::Platform && self.takes_names {
                        *inner = REDACTED.into();
                    }
                    self.fields(inner, within, holds.inside(key, within));
                }
            }
            Value::Array(items) => {
                let mut next = holds;
                for item in items {
                    let after = holds.after(item);
                    self.fields(item, within, next);
                    next = after;
                }
            }
            Value::String(text) => {
                *text = match holds {
                    Holds::Secret => REDACTED.to_owned(),
                    Holds::Name if self.takes_names => REDACTED.to_owned(),
                    _ => self.text(&masked(text, REDACTED)),
                }
            }
            Value::Number(_) | Value::Bool(_) if holds == Holds::Secret => *value = REDACTED.into(),
            Value::Number(_) | Value::Bool(_) | Value::Null => {}
        }
    }
}

/// Whose fields are looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Within {
    Platform,
    Workload,
}

/// What a field holds by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Holds {
    Secret,
    Name,
    Anything,
}

impl Holds {
    /// The same of the field `key` inside.
    fn inside(self, key: &str, within: Within) -> Self {
        match self {
            // Where a secret is found is no secret.
            _ if key == "from-env" || key == "from-file" => Self::Anything,
            Self::Secret => Self::Secret,
            _ if is_secret(key) => Self::Secret,
            _ if within == Within::Platform && IDENTITY_FIELDS.contains(&key) => Self::Name,
            other => other,
        }
    }
}

impl Holds {
    /// The same of what comes after `item` in a list: in a command, `--password` announces one.
    fn after(self, item: &Value) -> Self {
        let option = item.as_str().filter(|word| word.starts_with('-') && !word.contains('='));
        if option.is_some_and(|word| is_secret(word.trim_start_matches('-'))) { Self::Secret } else { self }
    }
}

/// Whether a field of this name holds a secret, or is a table of secrets.
pub fn is_secret(key: &str) -> bool {
    let key = key.to_ascii_lowercase();
    let joined = key.replace(['-', '_'], "");
    key == SECRET_TABLE
        || key.split(['-', '_']).any(|word| SECRET_WORDS.contains(&word))
        || SECRET_ENDS.iter().any(|end| joined.ends_with(end))
}

/// Every text of a value, with what it holds.
fn walk(value: &Value, within: Within, holds: Holds, each: &mut dyn FnMut(&str, Holds)) {
    match value {
        Value::Object(map) => map.iter().for_each(|(key, inner)| walk(inner, within, holds.inside(key, within), each)),
        Value::Array(items) => {
            let mut next = holds;
            for item in items {
                walk(item, within, next, each);
                next = holds.after(item);
            }
        }
        Value::String(text) => each(text, holds),
        Value::Number(_) | Value::Bool(_) if holds == Holds::Secret => each(&value.to_string(), holds),
        Value::Number(_) | Value::Bool(_) | Value::Null => {}
    }
}

/// Most texts that are not ours alone hold no secret, and a short one is no use in a text.
fn add(known: &mut Vec<String>, text: &str, shortest_chars: usize) {
    if text.chars().count() < shortest_chars || text == REDACTED || known.iter().any(|one| one == text) {
        return;
    }
    known.push(text.to_owned());
    // A secret that holds another goes whole.
    known.sort_by_key(|one| std::cmp::Reverse(one.len()));
}

/// The text with every place replaced where `name` stands as a word, in whatever case.
fn without_word(text: &str, name: &str) -> String {
    // ASCII letters alone change their case, so every place is the same in both.
    let (lower, name) = (text.to_ascii_lowercase(), name.to_ascii_lowercase());
    let mut shown = String::new();
    let mut end = 0;
    for (at, _) in lower.match_indices(&name) {
        let after = at + name.len();
        let part_of_word = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
        if at < end || part_of_word(text[..at].chars().next_back()) || part_of_word(text[after..].chars().next()) {
            continue;
        }
        shown.push_str(&text[end..at]);
        shown.push_str(REDACTED);
        end = after;
    }
    shown.push_str(&text[end..]);
    shown
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn shown(parameters: &Value, within: Within) -> Value {
        let mut redactor = Redactor { takes_names: true, ..Redactor::default() };
        redactor.learn(parameters, within);
        let mut shown = parameters.clone();
        redactor.fields(&mut shown, within, Holds::Anything);
        shown
    }

    #[test]
    fn fields_that_hold_secrets_are_replaced_whole() {
        let parameters = json!({
            "env": {"A": "1", "B": {"from-env": "B"}, "C": {"from-file": "/c"}},
            "url": "postgres://me:pw@{guest}:5432/db", "nested": [{"access-token": "t", "n": 7}],
            "command": ["x", "--password=p", "y=z"],
        });
        let expected = json!({
            "env": {"A": REDACTED, "B": {"from-env": "B"}, "C": {"from-file": "/c"}},
            "url": format!("postgres://me:{REDACTED}@{{guest}}:5432/db"), "nested": [{"access-token": REDACTED, "n": 7}],
            "command": ["x", format!("--password={REDACTED}"), "y=z"],
        });
        assert_eq!(shown(&parameters, Within::Workload), expected);
        let options = json!({"host": "h", "user": "root", "port": 22, "image": {"file": {"path": "/x"}}});
        let expected = json!({"host": REDACTED, "user": REDACTED, "port": REDACTED, "image": {"file": {"path": "/x"}}});
        assert_eq!(shown(&options, Within::Platform), expected);
    }

    #[test]
    fn secrets_of_a_command_line_are_known_by_what_comes_before_them() {
        let parameters = json!({
            "command": ["mysql", "--password", "p", "-u", "me", "--api-key=K", "PRIVATE_KEY=k", "--access-key", "a"],
            "header": "Authorization: Bearer abcdefgh12",
        });
        let key = format!("--api-key={REDACTED}");
        let expected = json!({
            "command":
                ["mysql", "--password", REDACTED, "-u", "me", key, format!("PRIVATE_KEY={REDACTED}"), "--access-key", REDACTED],
            "header": format!("Authorization: Bearer {REDACTED}"),
        });
        assert_eq!(shown(&parameters, Within::Workload), expected);
        assert_eq!(masked("Basic tests of the Bearer of rings", "*"), "Basic tests of the Bearer of rings");
    }

    #[test]
    fn what_is_known_is_taken_out_of_every_text_in_every_form() {
        let mut redactor = Redactor { takes_names: true, ..Redactor::default() };
        redactor.add_secret("pass w\"rd");
        redactor.add_secret("postgres://user17:in%40side@db17.example.org/x");
        redactor.add_name("root");
        let text = format!(
            "{:?} {} pass%20w%22rd in@side in%40side DB17.example.org db17 db177 root user17 rooted",
            "pass w\"rd", "pass w\"rd"
        );
        let shown = redactor.text(&text);
        assert_eq!(shown, format!("\"{0}\" {0} {0} {0} {0} {0} {0} db177 root {0} rooted", REDACTED));
        redactor.takes_names = false;
        assert!(redactor.text("db17").contains("db17"));
        assert!(!format!("{redactor:?}").contains("pass"));
    }

    #[test]
    fn lines_that_errors_show_keep_their_places_and_no_secret() {
        let text = "url = \"postgres://u:hunter@h\" # x\n[a.env]\nX = \"multi\"\n[b]\nenv = { A = \"one\", B = 'two' }\nq = 1\n";
        let masked = masked_source(text);
        assert_eq!(masked.len(), text.len());
        for secret in ["hunter", "multi", "one", "two"] {
            assert!(!masked.contains(secret), "{masked}");
        }
        assert!(masked.contains("q = 1") && masked.contains("postgres://u:******@h"), "{masked}");
    }
}
