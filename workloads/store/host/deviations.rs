//! What differs from the published original, report 004.

use tare_model::ByteSize;
use tare_model::deviation::Deviation;

use super::parameters::Parameters;
use crate::store::spec::StoreStatements;

/// Size of the database as published (report 004, line 43).
const DB_SIZE: ByteSize = ByteSize(4_000_000_000);

/// What differs with these parameters, on a PostgreSQL of this version.
pub(super) fn deviations(parameters: &Parameters, major: u32) -> Vec<Deviation> {
    // Lines 113 to 119 and 1170.
    let pair = ("DVD Store 2, ds2postgresqlserverdriver.exe on Windows", "tare's own driver after it");
    let why = "the published one runs on Windows alone, and says nothing of percentiles";
    let effect = "another cost an order in the client; the statements of an order are the same";
    let mut all = vec![
        Deviation::new("driver", pair, why, effect),
        Deviation::new(
            "server",
            ("PostgreSQL 8.4.4", format!("PostgreSQL {major}, with max_wal_size in place of checkpoint_segments")),
            "nobody has maintained 8.4 since 2014",
            "less CPU an order, and more of them",
        ),
        Deviation::new(
            "browse by title",
            ("DVD Store 2 looks for the actor instead", "looks for the title"),
            "what the original does is a slip",
            "another index is read in a third of the browses",
        ),
    ];
    if parameters.url.is_none() {
        let published = "all caches of the host are emptied, and the copy is restored as it was filled";
        let here = "the restored files alone leave the cache, and the copy is frozen and analysed";
        let why = "other programs of the host need its caches";
        let effect = "plans of queries are right from the start, and no row is frozen in a run";
        all.push(Deviation::new("restored database", (published, here), why, effect));
    }
    all.extend(asked(parameters));
    all
}

/// What the parameters ask for that was not published.
fn asked(parameters: &Parameters) -> Vec<Deviation> {
    let (mut all, defaults) = (Vec::new(), Parameters::default());
    let mut differs = |what: &str, published: String, here: String, effect: &str| {
        all.push(Deviation::new(what, (published, here), "the study asks for it", effect));
    };
    if parameters.db_size != DB_SIZE {
        let effect = "another part of the database is in memory, and rows are contended for otherwise";
        differs("size of the database", "4GB".to_owned(), parameters.db_size.to_string(), effect);
    }
    if parameters.url.is_some() {
        differs("server's settings", "those of the report".to_owned(), "the user's own".to_owned(), "not known");
    }
    if !parameters.settings.is_empty() {
        let here: Vec<&str> = parameters.settings.keys().map(String::as_str).collect();
        differs(
            "server's settings",
            "those of the report".to_owned(),
            format!("{} differ", here.join(", ")),
            "as they do",
        );
    }
    if parameters.statements != StoreStatements::Prepared {
        differs(
            "statements",
            "each a round trip".to_owned(),
            "each step a function".to_owned(),
            "fewer round trips an order",
        );
    }
    let mix = |own: &Parameters| {
        let (customers, searches, batch, lines) = (own.new_customers, own.searches, own.search_batch, own.line_items);
        format!("{customers} % new customers, {searches} browses of {batch} rows, {lines} lines")
    };
    if mix(parameters) != mix(&defaults) {
        differs("mix of an order", mix(&defaults), mix(parameters), "another cost an order");
    }
    if let Some(after) = parameters.kill_after {
        let here = format!("it is killed after {after}");
        differs("server", "left alone".to_owned(), here, "no order is taken while it recovers");
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_differs_is_listed() {
        let names = |parameters: &Parameters| -> Vec<String> {
            deviations(parameters, 15).into_iter().map(|own| own.what).collect()
        };
        let always = ["driver", "server", "browse by title", "restored database"];
        assert_eq!(names(&Parameters { db_size: DB_SIZE, ..Parameters::default() }), always);
        let other = Parameters { statements: StoreStatements::Functions, searches: 1, ..Parameters::default() };
        let all = [&always[..], &["size of the database", "statements", "mix of an order"]].concat();
        assert_eq!(names(&other), all);
    }
}
