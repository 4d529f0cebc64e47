package tare.business.client;

import tare.business.store.Dice;

/** Intended starts of one thread: exponential gaps of a given mean, the same for the same seed. */
final class Schedule {
    private static final int COUNTED_ONE_BY_ONE = 100_000;

    private final Dice dice;
    private final double meanGapNanos;
    private double at;

    /**
     * Starts at a moment, with a first gap.
     *
     * @param perSecond starts a second, above 0
     */
    Schedule(long seed, int thread, double perSecond, long start) {
        dice = new Dice(seed, 2_000_000L + thread);
        meanGapNanos = 1e9 / perSecond;
        at = start;
        advance();
    }

    /** The next intended start. */
    long next() {
        return (long) at;
    }

    /** Goes on to the one after. */
    void advance() {
        at += -Math.log(dice.share()) * meanGapNanos;
    }

    /** Goes on to the first at or after a moment, and returns how many were passed: of very many, how many to expect. */
    long skipTo(long moment) {
        long passed = 0;
        double expected = (moment - at) / meanGapNanos;
        if (expected > COUNTED_ONE_BY_ONE) {
            // Going through millions would take longer than was missed. Exponential gaps have no memory: the next
            // may as well begin here.
            passed = Math.round(expected);
            at = moment;
            advance();
        }
        while (next() < moment) {
            advance();
            passed++;
        }
        return passed;
    }
}
