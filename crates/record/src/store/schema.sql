-- The tables of results.sqlite. README.txt in every run folder explains them.
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

-- Metrics of response time in which operations are missing that did not complete. One that has no row in metrics was not reached.
CREATE TABLE incomplete (
    trial          INTEGER NOT NULL REFERENCES trials,
    metric         TEXT NOT NULL,
    -- Share of the operations that were due, 0 to 1.
    missing        REAL NOT NULL,
    -- NULL: none completed.
    completed_only REAL,
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
    -- Operations without a time: they did not complete. Those that were given up were waited for so long, all together.
    operations_failed   INTEGER NOT NULL,
    operations_given_up INTEGER NOT NULL,
    waited_ns           INTEGER NOT NULL,
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
    kernel_s       REAL,
    foreign_s      REAL,
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

-- What the workload does otherwise than the published one.
CREATE TABLE deviations (
    trial     INTEGER NOT NULL REFERENCES trials,
    position  INTEGER NOT NULL,
    what      TEXT NOT NULL,
    published TEXT NOT NULL,
    here      TEXT NOT NULL,
    why       TEXT NOT NULL,
    effect    TEXT NOT NULL,
    PRIMARY KEY (trial, position)
) WITHOUT ROWID;

CREATE TABLE facts (
    trial INTEGER NOT NULL REFERENCES trials,
    name  TEXT NOT NULL,
    value TEXT NOT NULL,
    PRIMARY KEY (trial, name)
) WITHOUT ROWID;

-- Figures by guest and driver, and the parts of an operation.
CREATE TABLE stored_parts (
    part_id  INTEGER PRIMARY KEY,
    trial    INTEGER NOT NULL REFERENCES trials,
    position INTEGER NOT NULL,
    guest    INTEGER NOT NULL,
    -- NULL stands for all drivers of the guest together.
    driver   INTEGER,
    -- NULL stands for all instances of the application in the guest together.
    instance INTEGER,
    UNIQUE (trial, position)
);

-- NULL stands for a value that is not a number.
CREATE TABLE stored_part_metrics (
    part_id INTEGER NOT NULL REFERENCES stored_parts,
    metric  TEXT NOT NULL,
    value   REAL,
    PRIMARY KEY (part_id, metric)
) WITHOUT ROWID;

CREATE VIEW parts AS
    SELECT trial, guest, driver, instance, metric, value
    FROM stored_part_metrics JOIN stored_parts USING (part_id);

-- A step's times are a histogram of its own, apart from those of whole operations.
CREATE TABLE steps (
    step_id  INTEGER PRIMARY KEY,
    trial    INTEGER NOT NULL REFERENCES trials,
    position INTEGER NOT NULL,
    step     TEXT NOT NULL,
    within   INTEGER NOT NULL,
    count    INTEGER NOT NULL,
    min_ns   INTEGER NOT NULL,
    max_ns   INTEGER NOT NULL,
    sum_ns   TEXT NOT NULL,
    mean_ns  REAL,
    UNIQUE (trial, position)
);

CREATE TABLE stored_step_bins (
    step_id INTEGER NOT NULL REFERENCES steps,
    low_ns  INTEGER NOT NULL,
    high_ns INTEGER NOT NULL,
    count   INTEGER NOT NULL,
    PRIMARY KEY (step_id, low_ns)
) WITHOUT ROWID;

CREATE VIEW step_bins AS
    SELECT trial, step, low_ns, high_ns, stored_step_bins.count AS count
    FROM stored_step_bins JOIN steps USING (step_id);

-- What was seen while guests were added. A trial has one scale-up at most, and a scale-up many levels.
CREATE TABLE scale_ups (
    trial                   INTEGER PRIMARY KEY REFERENCES trials,
    stopped                 TEXT NOT NULL,
    stopped_guests          INTEGER NOT NULL,
    stopped_detail          TEXT NOT NULL,
    -- NULL: load was not throttled.
    offered_per_guest_per_s REAL
);

CREATE TABLE levels (
    level_id        INTEGER PRIMARY KEY,
    trial           INTEGER NOT NULL REFERENCES scale_ups,
    position        INTEGER NOT NULL,
    guests          INTEGER NOT NULL,
    -- NULL: it held.
    failed          TEXT,
    -- The kind of what failed, as `stopped` of its scale-up. Figures count where it is NULL or `qos`.
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
    -- As in histograms.
    operations_failed   INTEGER NOT NULL,
    operations_given_up INTEGER NOT NULL,
    waited_ns           INTEGER NOT NULL,
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
    -- NULL stands for all instances of the application in the guest together.
    instance      INTEGER,
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
    SELECT trial, levels.position AS position, guests, guest, driver, instance, metric, value
    FROM stored_level_part_metrics
    JOIN stored_level_names USING (name_id)
    JOIN stored_level_parts USING (level_part_id)
    JOIN levels USING (level_id);

-- The host over time, seconds since the start of the scale-up.
CREATE TABLE courses (
    trial           INTEGER NOT NULL REFERENCES scale_ups,
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

-- Searches for the largest load, and requests by type. A trial has one search at most, and a search many tries.
CREATE TABLE searches (
    trial  INTEGER PRIMARY KEY REFERENCES trials,
    -- 0: no load did.
    held   REAL,
    -- NULL: the largest load that may be tried held.
    missed REAL,
    ended  TEXT NOT NULL
);

-- One load, tried once in a fresh instance.
CREATE TABLE tries (
    try_id          INTEGER PRIMARY KEY,
    trial           INTEGER NOT NULL REFERENCES searches,
    position        INTEGER NOT NULL,
    load            REAL,
    -- bracket, bisect or confirm.
    purpose         TEXT NOT NULL,
    -- NULL: it held.
    failed          TEXT,
    -- The kind of what failed: qos, invalid or failed. Figures count where it is NULL or `qos`.
    cause           TEXT,
    window_start_ns INTEGER NOT NULL,
    window_end_ns   INTEGER NOT NULL,
    -- Response times.
    operations      INTEGER NOT NULL,
    min_ns          INTEGER NOT NULL,
    max_ns          INTEGER NOT NULL,
    sum_ns          TEXT NOT NULL,
    -- As in histograms.
    operations_failed   INTEGER NOT NULL,
    operations_given_up INTEGER NOT NULL,
    waited_ns           INTEGER NOT NULL,
    UNIQUE (trial, position)
);

-- NULL stands for a value that is not a number.
CREATE TABLE stored_try_metrics (
    try_id INTEGER NOT NULL REFERENCES tries,
    metric TEXT NOT NULL,
    value  REAL,
    PRIMARY KEY (try_id, metric)
) WITHOUT ROWID;

CREATE VIEW try_metrics AS
    SELECT trial, position, load, metric, value FROM stored_try_metrics JOIN tries USING (try_id);

CREATE TABLE stored_try_counts (
    try_id INTEGER NOT NULL REFERENCES tries,
    name   TEXT NOT NULL,
    value  INTEGER NOT NULL,
    PRIMARY KEY (try_id, name)
) WITHOUT ROWID;

CREATE VIEW try_counts AS
    SELECT trial, position, load, name, value FROM stored_try_counts JOIN tries USING (try_id);

CREATE TABLE stored_try_bins (
    try_id  INTEGER NOT NULL REFERENCES tries,
    low_ns  INTEGER NOT NULL,
    high_ns INTEGER NOT NULL,
    count   INTEGER NOT NULL,
    PRIMARY KEY (try_id, low_ns)
) WITHOUT ROWID;

CREATE VIEW try_bins AS
    SELECT trial, position, load, low_ns, high_ns, count FROM stored_try_bins JOIN tries USING (try_id);

CREATE TABLE stored_try_flags (
    try_id   INTEGER NOT NULL REFERENCES tries,
    number   INTEGER NOT NULL,
    kind     TEXT NOT NULL,
    detail   TEXT NOT NULL,
    PRIMARY KEY (try_id, number)
) WITHOUT ROWID;

CREATE VIEW try_flags AS
    SELECT trial, position, load, kind, detail FROM stored_try_flags JOIN tries USING (try_id);

-- CPU of the system under test in the window of a try, as in cpu_accounts.
CREATE TABLE stored_try_cpu (
    try_id         INTEGER PRIMARY KEY REFERENCES tries,
    window_s       REAL,
    cpus           INTEGER NOT NULL,
    guest_user_s   REAL,
    guest_system_s REAL,
    neighbours_s   REAL,
    softirq_s      REAL,
    irq_s          REAL,
    kernel_s       REAL,
    foreign_s      REAL,
    total_s        REAL,
    steal_s        REAL,
    probe_s        REAL
);

CREATE VIEW try_cpu AS
    SELECT trial, position, load, window_s, cpus, guest_user_s, guest_system_s, neighbours_s, softirq_s, irq_s, kernel_s,
           foreign_s, total_s, steal_s, probe_s
    FROM stored_try_cpu JOIN tries USING (try_id);

-- Requests of one type in the window of a trial or of a try.
CREATE TABLE stored_requests (
    request_id        INTEGER PRIMARY KEY,
    trial             INTEGER NOT NULL REFERENCES trials,
    -- NULL: those of the trial.
    try_id            INTEGER REFERENCES tries,
    number            INTEGER NOT NULL,
    type              TEXT NOT NULL,
    requests          INTEGER NOT NULL,
    -- These three add up to `requests`.
    good              INTEGER NOT NULL,
    tolerable         INTEGER NOT NULL,
    failed            INTEGER NOT NULL,
    -- Counted in `failed` as well.
    validation_errors INTEGER NOT NULL,
    bytes             INTEGER NOT NULL,
    -- Sum of the response times.
    response_s        REAL,
    -- NULL: the type has no target share.
    target            REAL,
    -- Of the response times, where each is known.
    min_ns            INTEGER NOT NULL,
    max_ns            INTEGER NOT NULL,
    sum_ns            TEXT NOT NULL,
    -- As in histograms.
    operations_failed   INTEGER NOT NULL,
    operations_given_up INTEGER NOT NULL,
    waited_ns           INTEGER NOT NULL,
    UNIQUE (trial, try_id, number)
);

CREATE VIEW requests AS
    SELECT stored_requests.trial AS trial, position, load, number, type, requests, good, tolerable, stored_requests.failed AS failed,
           validation_errors, bytes, response_s, target
    FROM stored_requests LEFT JOIN tries USING (try_id);

CREATE TABLE stored_request_bins (
    request_id INTEGER NOT NULL REFERENCES stored_requests,
    low_ns     INTEGER NOT NULL,
    high_ns    INTEGER NOT NULL,
    count      INTEGER NOT NULL,
    PRIMARY KEY (request_id, low_ns)
) WITHOUT ROWID;

CREATE VIEW request_bins AS
    SELECT stored_requests.trial AS trial, position, load, type, low_ns, high_ns, count
    FROM stored_request_bins JOIN stored_requests USING (request_id) LEFT JOIN tries USING (try_id);

-- Where guests are added by tiles: the guests of one tile, in the order in which they are added.
CREATE TABLE tiles (
    trial    INTEGER NOT NULL REFERENCES scale_ups,
    position INTEGER NOT NULL,
    name     TEXT NOT NULL,
    PRIMARY KEY (trial, position)
) WITHOUT ROWID;

-- The load that was looked for at which the guests' CPUs are busy to a share, 0 to 1.
CREATE TABLE cpu_targets (
    trial     INTEGER PRIMARY KEY REFERENCES trials,
    target    REAL,
    tolerance REAL,
    -- Clients, or arrivals a second.
    load      REAL,
    share     REAL,
    -- NULL: of too few intervals to tell.
    spread    REAL
);

-- Each load that was tried; the last is the measurement.
CREATE TABLE cpu_target_steps (
    trial            INTEGER NOT NULL REFERENCES cpu_targets,
    position         INTEGER NOT NULL,
    load             REAL,
    share            REAL,
    operations_per_s REAL,
    window_s         REAL,
    PRIMARY KEY (trial, position)
) WITHOUT ROWID;

-- The share over the measured window.
CREATE TABLE cpu_target_courses (
    trial    INTEGER NOT NULL REFERENCES cpu_targets,
    position INTEGER NOT NULL,
    at_s     REAL,
    share    REAL,
    PRIMARY KEY (trial, position)
) WITHOUT ROWID;

-- How a trial took turns with the other arms of its block. Other trials have no row.
CREATE TABLE trial_turns (
    trial        INTEGER PRIMARY KEY REFERENCES trials,
    -- Start of the first round.
    start_ns     INTEGER NOT NULL,
    arms         INTEGER NOT NULL,
    turn_ns      INTEGER NOT NULL,
    warm_up_ns   INTEGER NOT NULL,
    gap_ns       INTEGER NOT NULL,
    waiting      TEXT NOT NULL CHECK (waiting IN ('idle', 'frozen')),
    measured_ns  INTEGER NOT NULL,
    overran      INTEGER NOT NULL,
    -- NULL: guests have no control group.
    waiting_cpus REAL,
    -- Where each turn was one command: how many an arm ran. NULL: turns had a length.
    commands     INTEGER
);

-- One turn in each round. NULL stands for a place, or for counts, that the trial does not have.
CREATE TABLE turns (
    trial       INTEGER NOT NULL REFERENCES trial_turns,
    round       INTEGER NOT NULL,
    place       INTEGER,
    operations  INTEGER,
    bytes       INTEGER,
    measured_ns INTEGER,
    response_ns INTEGER,
    -- Where it was a command: when that began.
    start_ns    INTEGER,
    PRIMARY KEY (trial, round)
) WITHOUT ROWID;
