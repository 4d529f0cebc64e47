package tare.business.measure;

/**
 * Counts of durations in nanoseconds, in the bins of HdrHistogram with three significant digits: 2,048 of width one,
 * then 1,024 for every doubling. A value read back is off by at most 0.1 %.
 *
 * <p>Written to by one thread, without allocation; read when that thread writes no more.
 */
public final class Histogram {
    private static final int SUB = 2_048;
    private static final int HALF = SUB / 2;
    private static final int HALF_BITS = 10;
    /** Doublings above the first bins; what is longer than 137 s falls into the last one, and its maximum is kept. */
    private static final int DOUBLINGS = 26;

    private final int[] counts = new int[SUB + DOUBLINGS * HALF];
    private long count;
    private long min = Long.MAX_VALUE;
    private long max;
    private long sum;

    /** Takes a bin: lowest value, highest value, count. */
    public interface Bins {
        /** One bin that is not empty, in ascending order. */
        void bin(long low, long high, long count);
    }

    /** Counts one value. */
    public void record(long value) {
        long held = Math.max(value, 0);
        counts[index(held)]++;
        count++;
        sum += held;
        min = Math.min(min, held);
        max = Math.max(max, held);
    }

    private static int index(long value) {
        int doubling = Math.max(63 - Long.numberOfLeadingZeros(value | 1) - HALF_BITS, 0);
        if (doubling > DOUBLINGS) {
            return SUB + DOUBLINGS * HALF - 1;
        }
        return doubling * HALF + (int) (value >>> doubling);
    }

    private static long low(int index) {
        int doubling = Math.max(index / HALF - 1, 0);
        return (long) (index - doubling * HALF) << doubling;
    }

    /** Adds all counts of another one. */
    public void add(Histogram other) {
        for (int i = 0; i < counts.length; i++) {
            counts[i] += other.counts[i];
        }
        count += other.count;
        sum += other.sum;
        min = Math.min(min, other.min);
        max = Math.max(max, other.max);
    }

    /** Forgets everything. */
    public void clear() {
        java.util.Arrays.fill(counts, 0);
        count = 0;
        sum = 0;
        min = Long.MAX_VALUE;
        max = 0;
    }

    /** Passes on all bins that are not empty, ascending. */
    public void forEachBin(Bins bins) {
        for (int i = 0; i < counts.length; i++) {
            if (counts[i] > 0) {
                bins.bin(low(i), low(i + 1) - 1, counts[i]);
            }
        }
    }

    /** The value below or at which that share (0 to 1) of all values lie, by the middle of its bin; 0 when empty. */
    public long quantile(double share) {
        long rank = Math.max((long) Math.ceil(share * count), 1);
        long seen = 0;
        for (int i = 0; i < counts.length; i++) {
            seen += counts[i];
            if (seen >= rank) {
                return Math.max(min, Math.min(max, (low(i) + low(i + 1) - 1) / 2));
            }
        }
        return 0;
    }

    /** Values counted. */
    public long count() {
        return count;
    }

    /** The smallest; 0 when empty. */
    public long min() {
        return count == 0 ? 0 : min;
    }

    /** The largest; 0 when empty. */
    public long max() {
        return max;
    }

    /** All together. */
    public long sum() {
        return sum;
    }
}
