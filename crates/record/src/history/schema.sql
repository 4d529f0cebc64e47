-- The tables of a history: what `tare history add` keeps of runs. docs/reference/history.md explains them.
CREATE TABLE runs (
    run          INTEGER PRIMARY KEY,
    run_id       TEXT NOT NULL UNIQUE,
    root_hash    TEXT NOT NULL UNIQUE,
    study        TEXT NOT NULL,
    started_at   TEXT NOT NULL,
    tare_version TEXT NOT NULL
);

-- Facts about the host and the machines beside it. Runs that differ in one that splits are in series of their own.
CREATE TABLE facts (
    run      INTEGER NOT NULL REFERENCES runs,
    position INTEGER NOT NULL,
    name     TEXT NOT NULL,
    value    TEXT NOT NULL,
    splits   INTEGER NOT NULL,
    PRIMARY KEY (run, position)
) WITHOUT ROWID;

-- An arm over the baseline of the same run.
CREATE TABLE effects (
    run          INTEGER NOT NULL REFERENCES runs,
    position     INTEGER NOT NULL,
    -- NULL: what is the guest's own over all cases.
    case_id      TEXT,
    case_label   TEXT NOT NULL,
    arm          TEXT NOT NULL,
    arm_label    TEXT NOT NULL,
    baseline     TEXT NOT NULL,
    metric       TEXT NOT NULL,
    metric_label TEXT NOT NULL,
    unit         TEXT NOT NULL,
    better       TEXT NOT NULL,
    is_primary   INTEGER NOT NULL,
    -- Digests of what the effect depends on in the plan, and of the arm's platform and options.
    plan         TEXT NOT NULL,
    arm_plan     TEXT NOT NULL,
    ratio        REAL NOT NULL,
    low          REAL,
    high         REAL,
    level        REAL NOT NULL,
    n            INTEGER NOT NULL,
    method       TEXT NOT NULL,
    -- Why no verdict may rest on it; NULL: nothing speaks against it.
    fault        TEXT,
    PRIMARY KEY (run, position)
) WITHOUT ROWID;
