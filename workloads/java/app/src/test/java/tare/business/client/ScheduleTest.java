package tare.business.client;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;

class ScheduleTest {
    @Test
    void gapsAreExponentialWithTheirMean() {
        Schedule schedule = new Schedule(1, 0, 1_000, 50);
        int starts = 200_000;
        int longer = 0;
        long first = schedule.next();
        long before = first;
        for (int i = 0; i < starts; i++) {
            schedule.advance();
            longer += schedule.next() - before > 1_000_000 ? 1 : 0;
            before = schedule.next();
        }
        assertTrue(first > 50);
        assertEquals(1e6, (before - first) / (double) starts, 1e4);
        // Of exponential gaps, 1/e are longer than the mean.
        assertEquals(Math.exp(-1), longer / (double) starts, 0.01);
    }

    @Test
    void theSameSeedStartsAtTheSameMoments() {
        Schedule one = new Schedule(5, 2, 10, 0);
        Schedule same = new Schedule(5, 2, 10, 0);
        assertNotEquals(one.next(), new Schedule(5, 3, 10, 0).next());
        for (int i = 0; i < 100; i++) {
            assertEquals(one.next(), same.next());
            one.advance();
            same.advance();
        }
    }

    @Test
    void whatIsSkippedIsCounted() {
        Schedule counted = new Schedule(5, 0, 1_000, 0);
        Schedule skipping = new Schedule(5, 0, 1_000, 0);
        long passed = 0;
        while (counted.next() < 1_000_000_000L) {
            counted.advance();
            passed++;
        }
        assertEquals(passed, skipping.skipTo(1_000_000_000L));
        assertEquals(counted.next(), skipping.next());
        assertEquals(0, skipping.skipTo(1_000_000_000L));
        Schedule dense = new Schedule(5, 0, 1e9, 0);
        assertEquals(1e10, dense.skipTo(10_000_000_000L), 10);
        assertTrue(dense.next() >= 10_000_000_000L && dense.next() < 10_000_000_100L);
    }
}
