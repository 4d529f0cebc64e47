-- Schema 4: searches for the largest load, and requests by type. A trial has one search at most, and a search many tries.
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
    other_s        REAL,
    total_s        REAL,
    steal_s        REAL,
    probe_s        REAL
);

CREATE VIEW try_cpu AS
    SELECT trial, position, load, window_s, cpus, guest_user_s, guest_system_s, neighbours_s, softirq_s, irq_s, other_s,
           total_s, steal_s, probe_s
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
