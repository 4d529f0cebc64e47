//! Filling a database of the social application: tables and rows side by side over several connections, each table's key and indexes as
//! soon as its rows are there.
//!
//! A table that one connection can fill is made, filled and committed in one transaction, so that its rows are written frozen; a larger
//! one is cut into chunks. The last transaction writes a mark onto the database: without it, it is not whole. What was made is dropped
//! again when the load fails or is cancelled.

mod jobs;
mod script;

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use crate::social::spec::{GENERATION, Scale, SocialLoad, SocialLoaded};
use tare_model::sql::SqlFailure;

use self::script::Script;
use super::data::{ATTENDEES, COMMENTS_MAX, FRIENDS, PEOPLE_MIN, Source, Table};
use crate::fill::crew::{Crew, cancelled, failed_at};
use crate::fill::rows::{self, Batch};
use crate::fill::server::{self, SETTINGS};
use crate::fill::work::{self, Chunk};
use crate::pg::Connection;

/// What begins the mark of a database that is whole: the comment on table `id_gen`.
pub const MARK: &str = "tare social";
/// Highest number of a row: `integer` in the database, with room for what a run adds.
const NUMBER_MAX: u64 = 2_000_000_000;

/// Makes the tables, fills them and makes their keys and indexes.
///
/// # Errors
/// Why the server did not do what it was asked, with its SQLSTATE and the table: too old, such tables there already, another load at
/// work, a scale that cannot be, cancelled.
pub fn load(load: &SocialLoad, cancel: &AtomicBool) -> Result<SocialLoaded, SqlFailure> {
    check_scale(&load.scale)?;
    let tables = Table::ALL.map(Table::name);
    server::guarded(&load.server, "social database", &tables, |keeper| fill(keeper, load, cancel))
}

fn check_scale(scale: &Scale) -> Result<(), SqlFailure> {
    let refuse = |message: String| Err(SqlFailure { sqlstate: None, message });
    if scale.people < PEOPLE_MIN || scale.tags == 0 || scale.events == 0 {
        return refuse(format!(
            "the social database is too small: it needs {PEOPLE_MIN} people, a tag and an event, and was to have {} people, {} tags and {} \
             events; give it the scale of at least one user",
            scale.people, scale.tags, scale.events
        ));
    }
    let (people, events) = (u64::from(scale.people), u64::from(scale.events));
    let most = (people * FRIENDS.1).max(events * ATTENDEES.1.max(COMMENTS_MAX)).max(people + events);
    if most > NUMBER_MAX {
        return refuse(format!(
            "the social database is too large: up to {most} rows of a table, at most {NUMBER_MAX} can be numbered; load it for fewer users"
        ));
    }
    Ok(())
}

fn fill(keeper: &mut Connection, load: &SocialLoad, cancel: &AtomicBool) -> Result<SocialLoaded, SqlFailure> {
    let began = Instant::now();
    let script = Script::ours()?;
    let mut crew = Crew::new(&load.server, load.connections, SETTINGS)?;
    let plan = jobs::plan(&load.scale, u64::from(load.connections.max(1)), &script)?;
    for table in plan.tables {
        keeper.simple(script.create(table)?).map_err(failed_at(table.name()))?;
    }
    let source = Source::new(load.seed, load.scale);
    let done = work::run(&mut crew, &plan.jobs, &Table::ALL, (began, cancel), |connection, chunk, stop| {
        send(connection, &source, &script, chunk, stop)
    })?;
    if cancel.load(Ordering::SeqCst) {
        return Err(cancelled());
    }
    finish(keeper, load)?;
    let indexes = began.elapsed().saturating_sub(done.rows);
    let tables = done.tables.into_iter().map(|(table, rows, bytes)| (table.name().to_owned(), rows, bytes)).collect();
    Ok(SocialLoaded { tables, rows_s: done.rows.as_secs_f64(), indexes_s: indexes.as_secs_f64() })
}

/// Loads a chunk in a transaction of its own. Returns rows and bytes.
fn send(
    connection: &mut Connection,
    source: &Source,
    script: &Script,
    chunk: &Chunk<Table>,
    stop: &AtomicBool,
) -> Result<(u64, u64), SqlFailure> {
    // Rows of a commit that is not on disk yet cannot be marked visible to all.
    let before = if chunk.whole { script.create(chunk.table)? } else { "SET LOCAL synchronous_commit = on" };
    let batch = Batch { table: chunk.table.name(), before: vec![before.to_owned()], frozen: chunk.whole };
    rows::send(connection, &batch, chunk.from..=chunk.to, stop, |number, out| source.write(chunk.table, number, out))
}

/// The last transaction: what makes the database one that is whole. Its commit waits for the disk.
fn finish(keeper: &mut Connection, load: &SocialLoad) -> Result<(), SqlFailure> {
    let Scale { people, tags, events } = load.scale;
    let mark = format!(
        "COMMENT ON TABLE id_gen IS '{MARK} {GENERATION}: seed {}, {people} people, {tags} tags, {events} events'",
        load.seed
    );
    for sql in ["BEGIN", "SET LOCAL synchronous_commit = on", &mark, "COMMIT"] {
        keeper.simple(sql).map_err(failed_at(&format!("mark: `{sql}`")))?;
    }
    Ok(())
}
