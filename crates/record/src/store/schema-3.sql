-- Schema 3: what was seen while guests were added. A trial has one ascent at most, and an ascent many levels.
CREATE TABLE ascents (
    trial                   INTEGER PRIMARY KEY REFERENCES trials,
    stopped                 TEXT NOT NULL,
    stopped_guests          INTEGER NOT NULL,
    stopped_detail          TEXT NOT NULL,
    -- NULL: load was not throttled.
    offered_per_guest_per_s REAL
);

CREATE TABLE levels (
    level_id        INTEGER PRIMARY KEY,
    trial           INTEGER NOT NULL REFERENCES ascents,
    position        INTEGER NOT NULL,
    guests          INTEGER NOT NULL,
    -- NULL: it held.
    failed          TEXT,
    -- The kind of what failed, as `stopped` of its ascent. Figures count where it is NULL or `qos`.
    cause           TEXT,
    window_start_ns INTEGER NOT NULL,
    window_end_ns   INTEGER NOT NULL,
    -- NULL: merging had not settled, or nothing was merged.
    settled_after_s REAL,
    -- Response times of all guests.
    operations      INTEGER NOT NULL,
    min_ns          INTEGER NOT NULL,
    max_ns          INTEGER NOT NULL,
    sum_ns          TEXT NOT NULL,
    -- Saved by merging, by what it was.
    zero_bytes      INTEGER NOT NULL,
    code_bytes      INTEGER NOT NULL,
    data_bytes      INTEGER NOT NULL,
    unknown_bytes   INTEGER NOT NULL,
    -- The kernel's counts of merging at the end of the window.
    pages_shared    INTEGER NOT NULL,
    pages_sharing   INTEGER NOT NULL,
    pages_unshared  INTEGER NOT NULL,
    pages_volatile  INTEGER NOT NULL,
    pages_skipped   INTEGER NOT NULL,
    pages_scanned   INTEGER NOT NULL,
    zero_pages      INTEGER NOT NULL,
    full_scans      INTEGER NOT NULL,
    profit_bytes    INTEGER NOT NULL,
    scanner_cpu_s   REAL,
    UNIQUE (trial, position)
);

-- NULL stands for a value that is not a number.
CREATE TABLE stored_level_metrics (
    level_id INTEGER NOT NULL REFERENCES levels,
    metric   TEXT NOT NULL,
    value    REAL,
    PRIMARY KEY (level_id, metric)
) WITHOUT ROWID;

CREATE VIEW level_metrics AS
    SELECT trial, position, guests, metric, value FROM stored_level_metrics JOIN levels USING (level_id);

CREATE TABLE stored_level_bins (
    level_id INTEGER NOT NULL REFERENCES levels,
    low_ns   INTEGER NOT NULL,
    high_ns  INTEGER NOT NULL,
    count    INTEGER NOT NULL,
    PRIMARY KEY (level_id, low_ns)
) WITHOUT ROWID;

CREATE VIEW level_bins AS
    SELECT trial, position, guests, low_ns, high_ns, count FROM stored_level_bins JOIN levels USING (level_id);

-- What each guest contributed at each number of guests: thousands of figures, so their names stand apart.
CREATE TABLE stored_level_names (
    name_id INTEGER PRIMARY KEY,
    metric  TEXT NOT NULL UNIQUE
);

CREATE TABLE stored_level_parts (
    level_part_id INTEGER PRIMARY KEY,
    level_id      INTEGER NOT NULL REFERENCES levels,
    position      INTEGER NOT NULL,
    guest         INTEGER NOT NULL,
    -- NULL stands for all drivers of the guest together.
    driver        INTEGER,
    UNIQUE (level_id, position)
);

-- NULL stands for a value that is not a number.
CREATE TABLE stored_level_part_metrics (
    level_part_id INTEGER NOT NULL REFERENCES stored_level_parts,
    name_id       INTEGER NOT NULL REFERENCES stored_level_names,
    value         REAL,
    PRIMARY KEY (level_part_id, name_id)
) WITHOUT ROWID;

CREATE VIEW level_parts AS
    SELECT trial, levels.position AS position, guests, guest, driver, metric, value
    FROM stored_level_part_metrics
    JOIN stored_level_names USING (name_id)
    JOIN stored_level_parts USING (level_part_id)
    JOIN levels USING (level_id);

-- The host over time, seconds since the start of the ascent.
CREATE TABLE courses (
    trial           INTEGER NOT NULL REFERENCES ascents,
    position        INTEGER NOT NULL,
    at_s            REAL,
    guests          INTEGER NOT NULL,
    load            INTEGER NOT NULL,
    available_bytes INTEGER NOT NULL,
    saved_bytes     INTEGER NOT NULL,
    profit_bytes    INTEGER NOT NULL,
    scanner_cpu_s   REAL,
    PRIMARY KEY (trial, position)
) WITHOUT ROWID;
