//! The server's own counters over the measured window, and what its clients waited for.
//!
//! One more connection looks five times a second at what each client's process is doing, and tells in parts of a few seconds;
//! the counters are read at the window's ends. Ten looks a second at 40 clients took 0.4 % of one CPU, so five take half of that.
//! Where arms take turns nothing is asked of the server in the turns of others.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tare_model::sql::{SqlRows, SqlServer};

use super::figures::{WAL_BYTES, WRITTEN_BYTES};
use crate::Driven;
use crate::asked::{Asked, cell};
use crate::clock::{monotonic_ns, wait_until};

/// Longest part, after which it is seen whether there is still something to watch.
const PART: Duration = Duration::from_secs(5);
/// From one look to the next.
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// Longest that the server may take beyond a part.
const LATE: Duration = Duration::from_secs(20);
/// Most kinds of waiting that are counted by name.
const LISTED: usize = 8;

/// Counts of blocks of tables and indexes: those that the server found in its own memory, and those that it asked the system for.
pub(super) const BLOCKS_FOUND: &str = "server: blocks found in shared buffers";
pub(super) const BLOCKS_READ: &str = "server: blocks read";
/// Count of checkpoints.
pub(super) const CHECKPOINTS: &str = "server: checkpoints";
/// What stands before the name of a count of how often a process was seen in a state.
pub(super) const PROCESSES: &str = "server processes: ";

/// The server's counters at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
struct Counters {
    /// The server's clock, seconds.
    at_s: f64,
    /// All that was ever written to the log, bytes.
    wal_bytes: f64,
    blocks_read: f64,
    blocks_hit: f64,
    commits: f64,
    rollbacks: f64,
    deadlocks: f64,
    checkpoints: f64,
    written_bytes: f64,
}

/// What was seen.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Watched {
    from: Option<Counters>,
    to: Option<Counters>,
    /// Stretches of steady state, together, and from the start of the first to the end of the last, seconds.
    steady_s: f64,
    all_s: f64,
    /// How often a client's process was seen doing what.
    doing: BTreeMap<String, u64>,
    /// Why there is not all.
    why_not: Option<String>,
}

/// The statement that reads the counters of the database, which differs by version.
fn counters(major: u32) -> String {
    let checkpoints = if major >= 17 {
        "SELECT num_timed + num_requested FROM pg_stat_checkpointer"
    } else {
        "SELECT checkpoints_timed + checkpoints_req FROM pg_stat_bgwriter"
    };
    // Blocks are of 8 kB in every build that is distributed.
    let written = match major {
        18.. => "SELECT coalesce(sum(write_bytes), 0) FROM pg_stat_io WHERE object <> 'wal'",
        16 | 17 => "SELECT coalesce(sum(writes * op_bytes), 0) FROM pg_stat_io",
        _ => "SELECT 8192 * (buffers_checkpoint + buffers_clean + buffers_backend) FROM pg_stat_bgwriter",
    };
    format!(
        "SELECT extract(epoch FROM clock_timestamp()), pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0'), blks_read, blks_hit, \
         xact_commit, xact_rollback, deadlocks, ({checkpoints}), ({written}) FROM pg_stat_database \
         WHERE datname = current_database()"
    )
}

/// The statement that looks at what clients' processes are doing, and ends after so long. Each look is a transaction of its own, so that
/// no row version is kept alive for it; the sums are kept in a setting of the session, so that nothing is written.
fn looking(part: &Part) -> String {
    let seconds: Vec<String> = part.looks.iter().map(|look| format!("{:.3}", look.as_secs_f64())).collect();
    format!(
        "DO $$
DECLARE
    began timestamptz := clock_timestamp();
    seen jsonb := '{{}}';
    look double precision;
    one record;
BEGIN
    FOREACH look IN ARRAY '{{{}}}'::double precision[] LOOP
        PERFORM pg_sleep(greatest(0.0, look - extract(epoch FROM clock_timestamp() - began)));
        FOR one IN
            SELECT coalesce(wait_event_type || ' ' || wait_event, 'running') AS doing, count(*) AS processes
            FROM pg_stat_activity
            WHERE backend_type = 'client backend' AND datname = current_database() AND pid <> pg_backend_pid()
            GROUP BY 1
        LOOP
            seen := seen || jsonb_build_object(one.doing, coalesce((seen ->> one.doing)::bigint, 0) + one.processes);
        END LOOP;
        COMMIT;
    END LOOP;
    PERFORM pg_sleep(greatest(0.0, {:.3} - extract(epoch FROM clock_timestamp() - began)));
    PERFORM set_config('tare.seen', seen::text, false);
END
$$",
        seconds.join(", "),
        part.lasts.as_secs_f64()
    )
}

/// What is watched with one connection: when it begins, for how long, and when it looks, from its beginning.
#[derive(Debug, PartialEq)]
struct Part {
    begins_ns: u64,
    lasts: Duration,
    looks: Vec<Duration>,
}

impl Part {
    /// The next one after a moment: all stretches that end in time, or as much of the first as there is time for. `None` where too
    /// little is left.
    fn next(now_ns: u64, stretches: &[(u64, u64)]) -> Option<Self> {
        let left =
            stretches.iter().map(|&(from, to)| (from.max(now_ns), to)).filter(|(from, to)| from + 1_000_000 <= *to);
        let (begins_ns, first_ends) = left.clone().next()?;
        let most = begins_ns + PART.as_nanos() as u64;
        let ends = left.clone().map(|(_, to)| to).take_while(|to| *to <= most).last();
        let ends_ns = ends.unwrap_or_else(|| first_ends.min(most));
        let every = LOOK_EVERY.as_nanos() as u64;
        let looks = left.take_while(|(from, _)| *from < ends_ns).flat_map(|(from, to)| {
            let looks = ((to - from).min(every) / 2..to.min(ends_ns) - from).step_by(every as usize);
            looks.map(move |look| Duration::from_nanos(from + look - begins_ns))
        });
        Some(Self { begins_ns, lasts: Duration::from_nanos(ends_ns - begins_ns), looks: looks.collect() })
    }
}

/// Watches over some stretches of the controller's clock, or until `stop` is set.
pub(super) fn watch(
    asked: Asked<'_>,
    server: &SqlServer,
    major: u32,
    stretches: &[(u64, u64)],
    stop: &AtomicBool,
) -> Watched {
    let seconds = |ns: u64| ns as f64 / 1e9;
    let all = stretches.last().zip(stretches.first()).map_or(0, |(last, first)| last.1 - first.0);
    let mut watched = Watched {
        steady_s: seconds(stretches.iter().map(|(from, to)| to - from).sum()),
        all_s: seconds(all),
        ..Watched::default()
    };
    let counters = counters(major);
    while let Some(part) = Part::next(monotonic_ns(), stretches) {
        wait_until(part.begins_ns, stop);
        if stop.load(Ordering::Relaxed) {
            break;
        }
        let looking = looking(&part);
        let statements = [counters.as_str(), &looking, "SELECT current_setting('tare.seen')", &counters];
        match asked.try_sql(server, &statements, part.lasts + LATE) {
            Ok(Ok(rows)) => watched.take(&rows),
            Ok(Err(failure)) => watched.why_not = Some(failure.message),
            Err(error) => watched.why_not = Some(error.to_string()),
        }
        if watched.why_not.is_some() {
            break;
        }
    }
    watched
}

impl Counters {
    fn read(rows: &SqlRows) -> Option<Self> {
        let row = rows.rows.first()?;
        let number = |column: usize| row.get(column)?.as_deref()?.parse::<f64>().ok();
        Some(Self {
            at_s: number(0)?,
            wal_bytes: number(1)?,
            blocks_read: number(2)?,
            blocks_hit: number(3)?,
            commits: number(4)?,
            rollbacks: number(5)?,
            deadlocks: number(6)?,
            checkpoints: number(7)?,
            written_bytes: number(8)?,
        })
    }
}

impl Watched {
    /// Takes in a part: counters, looks, sums, counters.
    fn take(&mut self, rows: &[SqlRows]) {
        let [before, _, seen, after] = rows else {
            self.why_not = Some("the server answered something else".to_owned());
            return;
        };
        self.from = self.from.or_else(|| Counters::read(before));
        self.to = Counters::read(after);
        if self.from.is_none() || self.to.is_none() {
            self.why_not = Some("the server's counters are not all numbers".to_owned());
        }
        let seen = cell(seen).and_then(|seen| serde_json::from_str::<BTreeMap<String, u64>>(seen).ok());
        for (doing, count) in seen.unwrap_or_default() {
            *self.doing.entry(doing).or_default() += count;
        }
    }

    /// Adds counts and facts to what the drivers reported. Counters belong to the moments when they were read; they are scaled to
    /// all of steady state, at the same rate, and to what of its turns was measured: between them the server has nothing to do.
    pub fn tell(&self, driven: &mut Driven) {
        if let Some(why) = &self.why_not {
            driven.facts.insert("server: not watched to the end".to_owned(), why.clone());
        }
        self.tell_doing(driven);
        let (Some(from), Some(to)) = (self.from, self.to) else { return };
        let seconds = to.at_s - from.at_s;
        let window_s = driven.measured_s();
        // A server that was started again counts from nothing.
        if self.why_not.is_some() || seconds <= 0.0 || to.commits < from.commits {
            return;
        }
        let counts = [
            (WAL_BYTES, to.wal_bytes - from.wal_bytes),
            (WRITTEN_BYTES, to.written_bytes - from.written_bytes),
            (BLOCKS_READ, to.blocks_read - from.blocks_read),
            (BLOCKS_FOUND, to.blocks_hit - from.blocks_hit),
            ("server: commits", to.commits - from.commits),
            ("server: rollbacks", to.rollbacks - from.rollbacks),
            ("server: deadlocks", to.deadlocks - from.deadlocks),
        ];
        for (name, grown) in counts {
            let over_window = grown.max(0.0) * (self.all_s / seconds) * (window_s / self.steady_s);
            driven.measurement.counts.insert(name.to_owned(), over_window.round() as u64);
        }
        let checkpoints = (to.checkpoints - from.checkpoints).max(0.0) as u64;
        driven.measurement.counts.insert(CHECKPOINTS.to_owned(), checkpoints);
        driven.facts.insert("server: counters read over".to_owned(), format!("{seconds:.2} s of {:.2} s", self.all_s));
    }

    /// Where the time of the clients' processes went.
    fn tell_doing(&self, driven: &mut Driven) {
        let all: u64 = self.doing.values().sum();
        if all == 0 {
            return;
        }
        let mut doing: Vec<(&String, &u64)> = self.doing.iter().collect();
        doing.sort_by(|a, b| b.1.cmp(a.1).then(a.0.cmp(b.0)));
        let counts = &mut driven.measurement.counts;
        for (what, count) in doing.iter().take(LISTED) {
            counts.insert(format!("{PROCESSES}{}", named(what)), **count);
        }
        let rest: u64 = doing.iter().skip(LISTED).map(|(_, count)| **count).sum();
        if rest > 0 {
            counts.insert(format!("{PROCESSES}other"), rest);
        }
        driven.facts.insert("server: looked at clients' processes".to_owned(), format!("{all} times, every 0.2 s"));
    }
}

/// What PostgreSQL calls a wait, for people.
fn named(doing: &str) -> String {
    match doing {
        "Client ClientRead" => "waiting for the client's next statement".to_owned(),
        "running" => "running, or ready to".to_owned(),
        other => other.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::yields::tests::result;
    use crate::yields::{UnitOfWork, from_result};
    use tare_model::drive::DriveResult;

    fn rows(cells: &[&str]) -> SqlRows {
        let row = cells.iter().map(|&cell| Some(cell.to_owned())).collect();
        SqlRows { rows: vec![row], ..SqlRows::default() }
    }

    fn part(from: [&str; 9], seen: &str, to: [&str; 9]) -> Vec<SqlRows> {
        vec![rows(&from), SqlRows::default(), rows(&[seen]), rows(&to)]
    }

    #[test]
    fn counters_are_scaled_to_the_window_at_the_rate_at_which_they_were_read() {
        let mut watched = Watched { steady_s: 1.0, all_s: 1.0, ..Watched::default() };
        let first = part(
            ["100.0", "1000", "0", "0", "10", "1", "0", "0", "0"],
            r#"{"running": 6, "IO WALSync": 2}"#,
            ["100.4", "2000", "1", "9", "20", "1", "0", "0", "0"],
        );
        let last = part(
            ["100.4", "2000", "1", "9", "20", "1", "0", "0", "0"],
            r#"{"running": 1, "Client ClientRead": 1}"#,
            ["100.5", "3000", "2", "18", "30", "2", "1", "1", "8192"],
        );
        watched.take(&first);
        watched.take(&last);
        let mut driven = from_result(result(10), UnitOfWork::Operation);
        watched.tell(&mut driven);
        let counts = &driven.measurement.counts;
        assert_eq!((counts[WAL_BYTES], counts[WRITTEN_BYTES], counts["server: checkpoints"]), (4000, 16_384, 1));
        assert_eq!((counts["server: commits"], counts["server: deadlocks"]), (40, 2));
        let seen = |state: &str| counts[&format!("{PROCESSES}{state}")];
        let states = ["running, or ready to", "IO WALSync", "waiting for the client's next statement"];
        assert_eq!(states.map(seen), [7, 2, 1]);
        // In turns, of which other arms had as many: all that the server did was for this arm.
        let turns = tare_model::turns::TurnsDone { measured_ns: 250_000_000, ..Default::default() };
        let mut in_turns = from_result(DriveResult { turns: Some(turns), ..result(10) }, UnitOfWork::Operation);
        Watched { steady_s: 0.25, all_s: 0.5, ..watched }.tell(&mut in_turns);
        assert_eq!(in_turns.measurement.counts[WAL_BYTES], 2000);
    }

    #[test]
    fn the_server_is_looked_at_in_the_turns_of_its_arm_and_a_part_ends_with_one() {
        let ms = |ms: u64| ms * 1_000_000;
        let part = |now, stretches: &[(u64, u64)]| {
            let stretches: Vec<_> = stretches.iter().map(|&(from, to)| (ms(from), ms(to))).collect();
            let part = Part::next(ms(now), &stretches)?;
            let looks: Vec<u128> = part.looks.iter().map(Duration::as_millis).collect();
            Some((part.begins_ns / 1_000_000, part.lasts.as_millis(), looks))
        };
        assert_eq!(part(0, &[(1000, 1450)]), Some((1000, 450, vec![100, 300])));
        assert_eq!(part(1449, &[(1000, 1450)]), Some((1449, 1, vec![0])));
        assert_eq!(part(1450, &[(1000, 1450)]), None);
        let (_, lasts, looks) = part(0, &[(1000, 9000)]).unwrap();
        assert_eq!((lasts, looks.len()), (5000, 25));
        let turns = [(1000, 1200), (1400, 1600), (5700, 5900), (6500, 6700)];
        assert_eq!(part(500, &turns), Some((1000, 4900, vec![100, 500, 4800])));
        assert_eq!(part(5950, &turns), Some((6500, 200, vec![100])));
    }

    #[test]
    fn a_server_that_could_not_be_watched_says_so_and_tells_no_figure() {
        let mut watched = Watched::default();
        watched.take(&part(["1", "x", "0", "0", "0", "0", "0", "0", "0"], "{}", [""; 9]));
        let mut driven = from_result(result(10), UnitOfWork::Operation);
        watched.tell(&mut driven);
        assert!(driven.facts["server: not watched to the end"].contains("counters"));
        assert!(!driven.measurement.counts.contains_key(WAL_BYTES));
    }
}
