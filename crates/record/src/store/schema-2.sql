-- Schema 2: figures by guest and driver, and the parts of an operation.
CREATE TABLE stored_parts (
    part_id  INTEGER PRIMARY KEY,
    trial    INTEGER NOT NULL REFERENCES trials,
    position INTEGER NOT NULL,
    guest    INTEGER NOT NULL,
    -- NULL stands for all drivers of the guest together.
    driver   INTEGER,
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
    SELECT trial, guest, driver, metric, value
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
