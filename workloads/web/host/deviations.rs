//! What differs from the published original, reported with every trial.

use tare_model::deviation::Deviation;

use crate::web::spec::SiteModel;

use super::parameters::{Parameters, Server};
use super::tables::Tables;
use crate::gold::shown;

/// Connections of a session, as published.
const CONNECTIONS: u8 = 2;
/// What a client reads from a connection, bytes a second, as published.
const RECEIVE: u64 = 100_000;

/// What differs: `sessions` are offered, of which the file set is made for `files_for`.
pub(super) fn deviations(
    parameters: &Parameters,
    tables: &Tables,
    model: &SiteModel,
    sessions: u32,
    files_for: u32,
) -> Vec<Deviation> {
    let mut all = tls(parameters, model);
    all.extend(connections(parameters));
    all.extend(file_set_of(parameters, tables, sessions, files_for));
    if parameters.backend_delay.ns > 0 {
        let here = format!("it waits {} before each answer", parameters.backend_delay);
        all.push(asked("backend", "no delay is stated", here, "pages take longer, and more of them wait at one time"));
    }
    if let Some(path) = &parameters.tables {
        let effect = "another mix of requests: figures cannot be set beside published ones";
        all.push(asked("tables", "those of the site", format!("those of {path}"), effect));
    }
    let server = match (&parameters.url, parameters.server) {
        (Some(_), _) => "the user's own",
        (None, Server::Tomcat) => "Tomcat, with pages by a servlet",
        (None, Server::Nginx) => "nginx before Tomcat, with pages by a servlet",
    };
    // Report 002, line 54.
    let published = "Rock Web Server and Rock JSP/Servlet container of 2008";
    let effect = "another CPU cost a request: capacities are not those of the report, ratios between arms may be";
    all.push(Deviation::new("server", (published, server), "the published one is no free software", effect));
    let why = "the published simulator is no free software";
    let pair = ("BeSim's", "tare's own, but for the form of query and reply");
    all.push(Deviation::new("backend's commands", pair, why, "little: replies have the published sizes"));
    all
}

/// What the study's parameters ask otherwise.
fn asked(what: &str, published: &str, here: String, effect: &str) -> Deviation {
    Deviation::new(what, (published, here), "the study asks for it", effect)
}

fn tls(parameters: &Parameters, model: &SiteModel) -> Vec<Deviation> {
    if !model.states.iter().any(|state| state.secure) {
        return Vec::new();
    }
    if !parameters.tls {
        let effect = "requests cost less CPU: capacity is larger";
        return vec![asked("TLS", "secure pages are encrypted", "none".to_owned(), effect)];
    }
    let pair = ("SSL of 2008", "1.3 or 1.2 with forward secrecy and a key on P-256");
    let why = "what was used in 2008 is broken, and libraries refuse it";
    let mut all = vec![Deviation::new("TLS", pair, why, "another CPU cost of handshakes and records")];
    if parameters.tls_url.is_some() {
        // Report 002, line 691.
        let pair = ("one of the server's own", "any that the server shows is taken");
        let why = "the server is the user's own";
        all.push(Deviation::new("certificate", pair, why, "less CPU in the client; none in the server"));
    }
    all
}

fn connections(parameters: &Parameters) -> Vec<Deviation> {
    let mut all = Vec::new();
    if parameters.connections != CONNECTIONS {
        let (published, here) = (format!("{CONNECTIONS} a session"), format!("{} a session", parameters.connections));
        all.push(asked(
            "connections",
            &published,
            here,
            "files of a page come in another order, and the server holds another number",
        ));
    }
    if parameters.receive_rate.0 != Some(RECEIVE) {
        let rate = parameters.receive_rate.0.map_or("unlimited".to_owned(), |rate| format!("{rate} B/s a connection"));
        let effect = "large files occupy connections for another time";
        all.push(asked("receive rate", &format!("{RECEIVE} B/s a connection"), rate, effect));
    }
    all
}

fn file_set_of(parameters: &Parameters, tables: &Tables, sessions: u32, files_for: u32) -> Vec<Deviation> {
    const EFFECT: &str = "more of the files are found in memory, and fewer are read from disk";
    let mut all = Vec::new();
    let files = &tables.files;
    let own = [
        ("users", files.checks.as_ref().map(|checks| checks.users_per_session)),
        ("directories", files.products.as_ref().map(|products| products.directories_per_session)),
        ("directories", files.downloads.as_ref().map(|downloads| downloads.directories_per_session)),
    ];
    if let Some((name, own)) = own.into_iter().find_map(|(name, own)| own.map(|own| (name, own)))
        && let Some(given) = parameters.per_session()
        && (given - own).abs() > 1e-9
    {
        let (published, here) = (format!("{own} {name} a session"), format!("{given} {name} a session"));
        all.push(asked("file set", &published, here, EFFECT));
    }
    if files_for < sessions {
        let pair = (
            "made for the sessions that are offered",
            format!("made for {files_for} sessions, {sessions} are offered"),
        );
        let why = "the file set is made once, before the load is known";
        all.push(Deviation::new("file set, sessions", pair, why, EFFECT));
    }
    all
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
        all.into_iter().map(|own| format!("{}: {}, published {}", own.what, own.here, own.published)).collect()
    }

    #[test]
    fn only_what_differs_is_listed() {
        let plain = listed(Site::Support, json!({}), 100);
        assert_eq!(plain.len(), 2, "{plain:?}");
        let banking = listed(Site::Banking, json!({}), 100);
        assert!(banking.iter().any(|line| line.starts_with("TLS: 1.3")), "{banking:?}");
        let other = json!({"tls": false, "connections": 6, "receive-rate": "unlimited", "users-per-session": 5, "backend-delay": "2ms"});
        let banking = listed(Site::Banking, other, 50).join("\n");
        for words in ["TLS: none", "6 a session", "unlimited", "5 users a session, published 50", "made for 50", "2ms"]
        {
            assert!(banking.contains(words), "{words}: {banking}");
        }
    }
}
