package tare.social;

/** The tests' rows: 20 people, 30 events, 60 tags. */
final class Rows {
    private Rows() {}

    /** Person N is `First N Last N` and befriends the next three; event N is in N days, was announced N days ago by person
     * N mod 20 + 1, and is attended by those with N mod 5 + 1 to N mod 5 + 4; tag N has those events that N divides. */
    static final String SQL = """
            INSERT INTO address SELECT i, 'street ' || i, 'flat', 'city', 'st', 'zip', 'land', 12.5, -7.25
                FROM generate_series(1, 50) i;
            INSERT INTO person SELECT i, 'user' || i, i::text, 'First' || i, 'Last' || i, 'mail' || i, '123', 'UTC',
                'Summary of ' || i, '/image/person/' || i || '.jpg', '/image/person/' || i || 't.jpg', i
                FROM generate_series(1, 20) i;
            INSERT INTO person_person SELECT 'user' || i, 'user' || (i + d - 1) % 20 + 1
                FROM generate_series(1, 20) i, generate_series(1, 3) d;
            INSERT INTO socialevent SELECT i, 'Event ' || i, 'Short ' || i, 'Long ' || i, 'user' || i % 20 + 1, 20 + i,
                '456', 'UTC', timestamp '2026-01-01' + i * interval '1 day',
                timestamp '2026-01-01' - i * interval '1 day', '', '', '', 0, 0, 0 FROM generate_series(1, 30) i;
            INSERT INTO person_socialevent SELECT 'user' || i % 5 + d, i
                FROM generate_series(1, 30) i, generate_series(1, 4) d;
            INSERT INTO comments_rating SELECT i, 'user' || i, i, 'Comment on ' || i, '2025-12-01', '2025-12-01', 4
                FROM generate_series(1, 20) i;
            INSERT INTO socialeventtag SELECT i, 'tag' || i, 30 / i FROM generate_series(1, 60) i;
            INSERT INTO socialeventtag_socialevent SELECT t, e FROM generate_series(1, 60) t, generate_series(1, 30) e
                WHERE e % t = 0;
            INSERT INTO id_gen VALUES ('person', 21), ('socialevent', 31), ('address', 51), ('comments_rating', 21),
                ('invitation', 1), ('socialeventtag', 61);
            """;
}
