package tare.web.backend;

import java.util.concurrent.atomic.AtomicLongArray;
import java.util.concurrent.atomic.LongAdder;

/**
 * Durations in nanoseconds, counted by many threads at once: bins of width one up to 256, then 128 for every doubling,
 * so that a value read back is off by at most 0.4 %.
 */
final class Latencies {
    private static final int HALF_BITS = 7;
    private static final int HALF = 1 << HALF_BITS;
    /** Up to 2^40 ns, 18 minutes; what is longer falls into the last bin. */
    private static final int DOUBLINGS = 32;

    private final AtomicLongArray counts = new AtomicLongArray((DOUBLINGS + 2) * HALF);
    private final LongAdder sum = new LongAdder();

    /** Counts one. */
    void record(long nanoseconds) {
        long value = Math.max(nanoseconds, 0);
        counts.incrementAndGet(index(value));
        sum.add(value);
    }

    static int index(long value) {
        int doubling = Math.max(63 - Long.numberOfLeadingZeros(value | 1) - HALF_BITS, 0);
        return doubling > DOUBLINGS ? (DOUBLINGS + 2) * HALF - 1 : doubling * HALF + (int) (value >>> doubling);
    }

    /** Middle of a bin. */
    static double middle(int index) {
        int doubling = Math.max(index / HALF - 1, 0);
        long low = (long) (index - doubling * HALF) << doubling;
        return low + ((1L << doubling) - 1) / 2.0;
    }

    /** All together, nanoseconds. */
    long sum() {
        return sum.sum();
    }

    /** The value below or at which that share (0 to 1) lie; 0 when there is none. */
    double quantile(double share) {
        long all = 0;
        for (int i = 0; i < counts.length(); i++) {
            all += counts.get(i);
        }
        long rank = Math.max((long) Math.ceil(share * all), 1);
        long seen = 0;
        for (int i = 0; i < counts.length(); i++) {
            seen += counts.get(i);
            if (seen >= rank) {
                return middle(i);
            }
        }
        return 0;
    }
}
