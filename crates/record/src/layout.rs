//! The files of a run folder.

/// The study file as the user wrote it.
pub const STUDY: &str = "study.toml";
/// The plan that is run.
pub const PLAN: &str = "plan.json";
/// The host, as it is disclosed.
pub const ENVIRONMENT: &str = "environment.json";
/// What was about to be done, and what was done.
pub const JOURNAL: &str = "journal.jsonl";
/// What a crash left of a line that it tore, kept aside when the run was continued.
pub const JOURNAL_TORN: &str = "journal.torn";
/// Every figure of every trial.
pub const RESULTS: &str = "results.sqlite";
/// The write-ahead log of the results, there while a run writes and after a crash.
pub const RESULTS_WAL: &str = "results.sqlite-wal";
/// The index of that log, made by SQLite.
pub const RESULTS_SHM: &str = "results.sqlite-shm";
/// SQLite's rollback journal, there for a moment when a writer begins and when it ends.
pub const RESULTS_JOURNAL: &str = "results.sqlite-journal";
/// What the run says.
pub const FINDINGS: &str = "findings.json";
/// The report.
pub const REPORT_HTML: &str = "report.html";
/// The report as Markdown.
pub const REPORT_MARKDOWN: &str = "report.md";
/// What is where, for people who open the folder without tare.
pub const README: &str = "README.txt";

/// The tables of the report, in stored units.
pub const TABLES: [&str; 8] = [
    "comparisons.csv",
    "comparisons.parquet",
    "percentiles.csv",
    "percentiles.parquet",
    "samples.csv",
    "samples.parquet",
    "trials.csv",
    "trials.parquet",
];

const MIB: u64 = 1 << 20;

/// Most bytes that a file of this name may have; `None` for a name that no file of a run folder has.
pub fn most_bytes(name: &str) -> Option<u64> {
    match name {
        STUDY | README | ENVIRONMENT => Some(MIB),
        // A plan of the most trials that a study may have takes less than half of it.
        PLAN => Some(8 * MIB),
        // Lines of some 200 bytes, some twenty a trial.
        JOURNAL | JOURNAL_TORN => Some(96 * MIB),
        RESULTS | RESULTS_WAL => Some(8192 * MIB),
        RESULTS_SHM | RESULTS_JOURNAL => Some(64 * MIB),
        FINDINGS => Some(64 * MIB),
        REPORT_HTML | REPORT_MARKDOWN => Some(256 * MIB),
        name if TABLES.contains(&name) => Some(1024 * MIB),
        _ => None,
    }
}

/// Text of [`README`].
pub(crate) const README_TEXT: &str = "\
This folder is one run of tare. Everything in it can be read without tare.

study.toml        the study as it was written
plan.json         every trial in the order in which it was to run
environment.json  the host that it ran on
journal.jsonl     what was done, one JSON object a line, in order; the first has the schema of the folder; `chain` is the SHA-256 of the text of the line
                  before's `chain` (of the first line: nothing) and the bytes of this line before `,\"chain\"`
results.sqlite    every figure of every trial (SQLite 3)
findings.json     estimates, intervals and verdicts, made from the files above
report.html       the same for people; report.md without figures
*.parquet, *.csv  four tables for programs, twice, in stored units; columns of Parquet files have types, and the first line of CSV files names
                  the columns: trials (each metric of each
                  completed trial), comparisons (each metric on each arm, and against the baseline), percentiles, samples
                  (the trials that the report draws over time). All else is in findings.json

The verdicts on primary metrics, from Parquet files, with DuckDB and with pandas (which needs pyarrow or fastparquet); no network is needed:

    SELECT \"case\", arm, metric, ratio, ratio_low, ratio_high, verdict FROM 'comparisons.parquet'
    WHERE \"primary\" AND verdict IS NOT NULL ORDER BY 1, 2, 3;

    import pandas
    pandas.read_parquet('comparisons.parquet').query('primary and verdict.notna()')[
        ['case', 'arm', 'metric', 'ratio', 'ratio_low', 'ratio_high', 'verdict']]

Tables and views of results.sqlite. `trial` is the position in the plan, from 0. Units are the last
word of a column's name; the unit of a metric is in metric_specs. All times in _ns are CLOCK_MONOTONIC of the host.

trials          one row a trial: block (from 1), case_id, arm, started_at (UTC), wall_s, load_s,
                outcome (completed, invalid, failed), phase and reason, measured window
metrics         trial, metric, value: completed trials only
metric_specs    trial, metric, label, unit, better (lower or higher), is_primary
incomplete      trial, metric, missing (share of the operations that did not complete, 0 to 1), completed_only (the figure without
                them; NULL: none completed): metrics of response time. One without a row in metrics was not reached
counts          trial, name, value: operations, lost, errors ...
histograms      trial, name (response, service, lateness), count, min_ns, max_ns, sum_ns (text), mean_ns; operations_failed, operations_given_up (they did
                not complete and count as longer than all others), waited_ns (for those that were given up)
histogram_bins  trial, histogram, low_ns, high_ns, count
parts           trial, guest, driver, instance (from 1; NULL: all of the guest's together), metric, value: where a trial has
                several guests, drivers or instances of the application
steps           trial, step, within (1: part of the response time), count, min_ns, max_ns, sum_ns (text), mean_ns:
                the timed parts of an operation, in the order of position
step_bins       trial, step, low_ns, high_ns, count
scale_ups         where guests are added, one row a trial: why no more were (stopped, stopped_guests, stopped_detail), and what
                each was offered
levels          one row a number of guests, in the order of position: guests, failed (NULL: it held) and its cause (qos:
                an objective was missed, and its figures count; any other: they do not), measured window, operations, min_ns, max_ns, sum_ns (text), saved bytes by what they were, the kernel's counts of merging
level_metrics   trial, position, guests, metric, value; level_bins: response times of all guests, as in histogram_bins
level_parts     trial, position, guests, guest (from 1), driver, instance, metric, value: what each guest contributed
tiles           trial, position, name: the guests of one tile, where guests are added by tiles
courses         trial, at_s (since the first guest was asked for), guests, load (1: offered), memory of the host: the host over
                time, once a second
searches        where the largest load is looked for, one row a trial: held (the largest load that held each time), missed (the
                smallest above it that did not; NULL: the largest that may be tried held), and how the search ended
tries           one row a load that was tried in a fresh instance, in the order of position: load (clients, or arrivals a
                second), purpose (bracket, bisect, confirm), failed (NULL: it held) and its cause (qos: an objective was missed, and
                its figures count; invalid, failed: they do not), measured window, operations, min_ns, max_ns, sum_ns (text)
try_metrics     trial, position, load, metric, value; try_counts: name, value; try_bins: response times, as in
                histogram_bins; try_flags; try_cpu, as cpu_accounts
cpu_targets     where the load is looked for that keeps the guests' CPUs busy to a share, one row a trial: target, tolerance, load
                that was measured at, share (0 to 1) and its spread over the intervals of the window
cpu_target_steps trial, position, load, share, operations_per_s, window_s: the loads that were tried; the last is the measurement
cpu_target_courses trial, position, at_s (since the window's start), share: by interval of the window
requests        where a workload has request types: trial, position and load (of the try; NULL: of the trial itself), number,
                type, requests = good + tolerable + failed, validation_errors (in failed too), bytes, response_s (their
                sum), target (share of all requests, 0 to 1)
request_bins    trial, position, load, type, low_ns, high_ns, count: response times by type
trial_turns     where arms took turns, one row a trial: start_ns of the first round, arms, turn_ns, warm_up_ns (driven and not
                measured), gap_ns, waiting (idle or frozen), measured_ns (time measured in all turns), overran (turns in which
                something reached into another arm's turn), waiting_cpus (CPUs that its guests used in others' turns), commands
                (how many an arm ran, where each turn was one; turn_ns and warm_up_ns are 0 then)
turns           trial, round (from 0), place (in the round, from 0), operations, bytes, measured_ns, response_ns (sum of the
                response times): what was measured in each turn; start_ns (of the command, where each turn was one)
samples         trial, at_ns, source, series, value; a counter's differences are what means something. What a command of the user's
                printed has the source user-command, and the hypervisor's counters have the source hypervisor
cpu_accounts    CPU seconds of the system under test in the window, by where they were spent
parity          what was asked for the guest and what the kernel granted
flags, facts    what a reader must know; what disclosure wants
deviations      what the workload does otherwise than the published one that it is modelled on: what, published, here, why, effect (likely)
meta            run id, version, schema

The primary metric of each completed trial, with pandas:

    import pandas, sqlite3
    db = sqlite3.connect('file:results.sqlite?mode=ro', uri=True)
    pandas.read_sql('''SELECT block, case_id, arm, metric, value, unit FROM trials
                       JOIN metrics USING (trial) JOIN metric_specs USING (trial, metric)
                       WHERE is_primary = 1 ORDER BY case_id, arm, block''', db)

Response times of each arm, merged over its trials (this and what follows by `sqlite3 results.sqlite`, or `pandas.read_sql`):

    SELECT case_id, arm, low_ns, sum(count) AS operations FROM histogram_bins
    JOIN trials USING (trial) WHERE histogram = 'response' GROUP BY 1, 2, 3 ORDER BY 1, 2, 3;

Operations a second of each number of guests, where guests are added:

    SELECT case_id, arm, block, guests, value FROM level_metrics
    JOIN levels USING (trial, position, guests) JOIN trials USING (trial)
    WHERE metric = 'operations_per_s' AND (cause IS NULL OR cause = 'qos') ORDER BY 1, 2, 3, 4;

How requests were served at each load that was tried, where the largest is looked for:

    SELECT case_id, arm, block, position, load, sum(requests) AS total, sum(good) * 1.0 / sum(requests) AS good,
           sum(good + tolerable) * 1.0 / sum(requests) AS at_least_tolerable, sum(bytes) / sum(response_s) AS byte_rate
    FROM requests JOIN trials USING (trial) WHERE position IS NOT NULL
    GROUP BY case_id, arm, block, position, load ORDER BY case_id, arm, block, position;

Do not edit these files: tare keeps a digest of each trial and says when one was altered. `tare verify .` checks the files
above findings.json and prints the root hash, the `chain` of the journal's last line; `tare verify . --root HASH` checks that this is the run that was reported.
`tare report .` makes the findings and the report again.
";
