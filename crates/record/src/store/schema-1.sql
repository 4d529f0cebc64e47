-- Schema 1 of results.sqlite. README.txt in every run folder explains the tables.
CREATE TABLE meta (
    key   TEXT PRIMARY KEY,
    value TEXT NOT NULL
) WITHOUT ROWID;

CREATE TABLE trials (
    trial           INTEGER PRIMARY KEY,
    block           INTEGER NOT NULL,
    case_id         TEXT NOT NULL,
    arm             TEXT NOT NULL,
    started_at      TEXT NOT NULL,
    wall_s          REAL,
    load_s          REAL,
    outcome         TEXT NOT NULL CHECK (outcome IN ('completed', 'invalid', 'failed')),
    phase           TEXT,
    reason          TEXT,
    window_start_ns INTEGER,
    window_end_ns   INTEGER
);

CREATE TABLE metric_specs (
    trial      INTEGER NOT NULL REFERENCES trials,
    position   INTEGER NOT NULL,
    metric     TEXT NOT NULL,
    label      TEXT NOT NULL,
    unit       TEXT NOT NULL,
    better     TEXT NOT NULL,
    is_primary INTEGER NOT NULL,
    PRIMARY KEY (trial, position)
) WITHOUT ROWID;

-- NULL stands for a value that is not a number.
CREATE TABLE metrics (
    trial  INTEGER NOT NULL REFERENCES trials,
    metric TEXT NOT NULL,
    value  REAL,
    PRIMARY KEY (trial, metric)
) WITHOUT ROWID;

CREATE TABLE counts (
    trial INTEGER NOT NULL REFERENCES trials,
    name  TEXT NOT NULL,
    value INTEGER NOT NULL,
    PRIMARY KEY (trial, name)
) WITHOUT ROWID;

CREATE TABLE histograms (
    histogram_id INTEGER PRIMARY KEY,
    trial        INTEGER NOT NULL REFERENCES trials,
    name         TEXT NOT NULL,
    count        INTEGER NOT NULL,
    min_ns       INTEGER NOT NULL,
    max_ns       INTEGER NOT NULL,
    sum_ns       TEXT NOT NULL,
    mean_ns      REAL,
    UNIQUE (trial, name)
);

CREATE TABLE stored_bins (
    histogram_id INTEGER NOT NULL REFERENCES histograms,
    low_ns       INTEGER NOT NULL,
    high_ns      INTEGER NOT NULL,
    count        INTEGER NOT NULL,
    PRIMARY KEY (histogram_id, low_ns)
) WITHOUT ROWID;

CREATE VIEW histogram_bins AS
    SELECT trial, name AS histogram, low_ns, high_ns, stored_bins.count AS count
    FROM stored_bins JOIN histograms USING (histogram_id);

CREATE TABLE series (
    series_id INTEGER PRIMARY KEY,
    source    TEXT NOT NULL,
    series    TEXT NOT NULL,
    UNIQUE (source, series)
);

CREATE TABLE stored_samples (
    trial     INTEGER NOT NULL REFERENCES trials,
    position  INTEGER NOT NULL,
    series_id INTEGER NOT NULL REFERENCES series,
    at_ns     INTEGER NOT NULL,
    value     REAL,
    PRIMARY KEY (trial, position)
) WITHOUT ROWID;

CREATE VIEW samples AS
    SELECT trial, at_ns, source, series, value
    FROM stored_samples JOIN series USING (series_id);

CREATE TABLE cpu_accounts (
    trial          INTEGER PRIMARY KEY REFERENCES trials,
    window_s       REAL,
    cpus           INTEGER NOT NULL,
    guest_user_s   REAL,
    guest_system_s REAL,
    neighbours_s   REAL,
    softirq_s      REAL,
    irq_s          REAL,
    other_s        REAL,
    total_s        REAL,
    steal_s        REAL,
    probe_s        REAL
);

CREATE TABLE parity (
    trial    INTEGER NOT NULL REFERENCES trials,
    position INTEGER NOT NULL,
    resource TEXT NOT NULL,
    asked    TEXT NOT NULL,
    granted  TEXT,
    equal    INTEGER NOT NULL,
    note     TEXT NOT NULL,
    PRIMARY KEY (trial, position)
) WITHOUT ROWID;

CREATE TABLE flags (
    trial    INTEGER NOT NULL REFERENCES trials,
    position INTEGER NOT NULL,
    kind     TEXT NOT NULL,
    detail   TEXT NOT NULL,
    PRIMARY KEY (trial, position)
) WITHOUT ROWID;

CREATE TABLE facts (
    trial INTEGER NOT NULL REFERENCES trials,
    name  TEXT NOT NULL,
    value TEXT NOT NULL,
    PRIMARY KEY (trial, name)
) WITHOUT ROWID;
