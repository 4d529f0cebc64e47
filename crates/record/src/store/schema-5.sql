-- Schema 5: instances of an application in one guest, CPUs that are held busy to a share, and guests that are added by tiles.
-- Parts of which each is one instance of its guest.
CREATE TABLE stored_part_instances (
    part_id  INTEGER PRIMARY KEY REFERENCES stored_parts,
    instance INTEGER NOT NULL
);

DROP VIEW parts;

CREATE VIEW parts AS
    SELECT trial, guest, driver, instance, metric, value
    FROM stored_part_metrics JOIN stored_parts USING (part_id) LEFT JOIN stored_part_instances USING (part_id);

-- The same of a number of guests.
CREATE TABLE stored_level_part_instances (
    level_part_id INTEGER PRIMARY KEY REFERENCES stored_level_parts,
    instance      INTEGER NOT NULL
);

DROP VIEW level_parts;

CREATE VIEW level_parts AS
    SELECT trial, levels.position AS position, guests, guest, driver, instance, metric, value
    FROM stored_level_part_metrics
    JOIN stored_level_names USING (name_id)
    JOIN stored_level_parts USING (level_part_id)
    LEFT JOIN stored_level_part_instances USING (level_part_id)
    JOIN levels USING (level_id);

-- Where guests are added by tiles: the guests of one tile, in the order in which they are added.
CREATE TABLE tiles (
    trial    INTEGER NOT NULL REFERENCES ascents,
    position INTEGER NOT NULL,
    name     TEXT NOT NULL,
    PRIMARY KEY (trial, position)
) WITHOUT ROWID;

-- The load that was looked for at which the guests' CPUs are busy to a share, 0 to 1.
CREATE TABLE holds (
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
CREATE TABLE hold_steps (
    trial            INTEGER NOT NULL REFERENCES holds,
    position         INTEGER NOT NULL,
    load             REAL,
    share            REAL,
    operations_per_s REAL,
    window_s         REAL,
    PRIMARY KEY (trial, position)
) WITHOUT ROWID;

-- The share over the measured window.
CREATE TABLE hold_courses (
    trial    INTEGER NOT NULL REFERENCES holds,
    position INTEGER NOT NULL,
    at_s     REAL,
    share    REAL,
    PRIMARY KEY (trial, position)
) WITHOUT ROWID;
