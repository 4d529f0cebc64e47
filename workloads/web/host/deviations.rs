//! What differs from the published original, reported with every trial.

use crate::web::spec::SiteModel;

use super::parameters::{Parameters, Server};
use super::tables::Tables;
use crate::gold::shown;

/// Connections of a session, as published.
const CONNECTIONS: u8 = 2;
/// What a client reads from a connection, bytes a second, as published.
const RECEIVE: u64 = 100_000;

/// Facts, each begun with `deviation: `: name and what differs. `sessions` are offered, of which the file set is made for `files_for`.
pub(super) fn deviations(
    parameters: &Parameters,
    tables: &Tables,
    model: &SiteModel,
    sessions: u32,
    files_for: u32,
) -> Vec<(String, String)> {
    let mut facts = Vec::new();
    let mut tell = |name: &str, what: String| facts.push((format!("deviation: {name}"), what));
    let secure = model.states.iter().any(|state| state.secure);
    if secure && !parameters.tls {
        tell("TLS", "none, where the site's table asks for it".to_owned());
    } else if secure {
        tell("TLS", "1.3 or 1.2 with forward secrecy and a key on P-256; the original's was of its time".to_owned());
    }
    if parameters.connections != CONNECTIONS {
        tell("connections", format!("{} a session, published {CONNECTIONS}", parameters.connections));
    }
    if parameters.receive_rate.0 != Some(RECEIVE) {
        let rate = parameters.receive_rate.0.map_or("unlimited".to_owned(), |rate| format!("{rate} B/s"));
        tell("receive rate", format!("{rate} a connection, published {RECEIVE} B/s"));
    }
    let files = &tables.files;
    let own = [
        ("users", files.checks.as_ref().map(|checks| checks.users_per_session)),
        ("directories", files.products.as_ref().map(|products| products.directories_per_session)),
        ("directories", files.downloads.as_ref().map(|downloads| downloads.directories_per_session)),
    ];
    let of_site = own.into_iter().find_map(|(name, own)| own.map(|own| (name, own)));
    if let Some((name, own)) = of_site
        && let Some(given) = parameters.per_session()
        && (given - own).abs() > 1e-9
    {
        tell("file set", format!("{given} {name} a session, published {own}"));
    }
    if files_for < sessions {
        tell("file set, sessions", format!("made for {files_for} sessions, {sessions} are offered"));
    }
    if parameters.backend_delay.ns > 0 {
        tell("backend", format!("waits {} before each answer", parameters.backend_delay));
    }
    if let Some(path) = &parameters.tables {
        tell("tables", format!("those of {path}"));
    }
    let server = match (&parameters.url, parameters.server) {
        (Some(_), _) => "the user's own",
        (None, Server::Tomcat) => "Tomcat, with pages by a servlet; the original had JSP under a server of 2008",
        (None, Server::Nginx) => {
            "nginx before Tomcat, with pages by a servlet; the original had JSP under a server of 2008"
        }
    };
    tell("server", server.to_owned());
    tell("backend's commands", "tare's own but for the form of query and reply".to_owned());
    facts
}

/// The file set for people.
pub(super) fn file_set(model: &SiteModel) -> String {
    let totals = super::fileset::Planning::new(model).totals();
    format!("{} files, {}", totals.files, shown(totals.bytes))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::web::compile::{compile, file_set};
    use crate::web::parameters::checked;
    use crate::web::tables::Site;

    fn listed(site: Site, parameters: serde_json::Value, files_for: u32) -> Vec<String> {
        let (parameters, tables) = checked(site, &parameters).unwrap();
        let model = compile(&tables, file_set(&tables.files, parameters.per_session(), files_for));
        let all = deviations(&parameters, &tables, &model, 100, files_for);
        all.into_iter().map(|(name, what)| format!("{name}: {what}")).collect()
    }

    #[test]
    fn only_what_differs_is_listed() {
        let plain = listed(Site::Support, json!({}), 100);
        assert_eq!(plain.len(), 2, "{plain:?}");
        let banking = listed(Site::Banking, json!({}), 100);
        assert!(banking.iter().any(|line| line.starts_with("deviation: TLS: 1.3")), "{banking:?}");
        let other = json!({"tls": false, "connections": 6, "receive-rate": "unlimited", "users-per-session": 5, "backend-delay": "2ms"});
        let banking = listed(Site::Banking, other, 50).join("\n");
        for words in ["TLS: none", "6 a session", "unlimited", "5 users a session, published 50", "made for 50", "2ms"]
        {
            assert!(banking.contains(words), "{words}: {banking}");
        }
    }
}
