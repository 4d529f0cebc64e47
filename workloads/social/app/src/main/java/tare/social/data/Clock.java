package tare.social.data;

import java.time.LocalDateTime;

/** What time it is: 2026-01-01T00:00:00 when the application began, so that loaded events lie ahead on whatever day it runs. */
final class Clock {
    private static final LocalDateTime BEGIN = LocalDateTime.of(2026, 1, 1, 0, 0);

    private final long began = System.nanoTime();

    LocalDateTime now() {
        // As precise as the database keeps it.
        return BEGIN.plusNanos((System.nanoTime() - began) / 1_000 * 1_000);
    }
}
