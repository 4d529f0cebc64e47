package tare.social;

import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.LongSupplier;
import tare.social.data.Unavailable;

/** The home page of those who are not logged in: kept for a while. */
final class HomePageCache {
    private record Made(byte[] bytes, long at) {}

    private record Failed(Unavailable why, long at) {}

    /** Makes it. */
    @FunctionalInterface
    interface Maker {
        byte[] make() throws Unavailable;
    }

    private final LongSupplier clock;
    private final long ttlNs;
    private final Counts counts;
    private final ReentrantLock making = new ReentrantLock();
    private volatile Made made;
    /** The last time that it could not be made; of the lock. */
    private Failed failed;

    /**
     * There is none yet.
     *
     * @param ttlS seconds for which it is kept; 0 makes it for everybody
     */
    HomePageCache(int ttlS, Counts counts) {
        this(ttlS, counts, System::nanoTime);
    }

    /**
     * With another clock.
     *
     * @param clock nanoseconds since whenever
     */
    HomePageCache(int ttlS, Counts counts, LongSupplier clock) {
        this.clock = clock;
        ttlNs = TimeUnit.SECONDS.toNanos(ttlS);
        this.counts = counts;
    }

    /**
     * The page; made anew by one at a time where it is too old. The others wait for theirs, and fail with it: each trying for
     * itself would wait for all before it.
     */
    byte[] get(Maker maker) throws Unavailable {
        if (ttlNs == 0) {
            return maker.make();
        }
        long began = clock.getAsLong();
        Made now = made;
        if (isYoung(now)) {
            counts.homeHits.increment();
            return now.bytes();
        }
        making.lock();
        try {
            now = made;
            if (isYoung(now)) {
                counts.homeHits.increment();
                return now.bytes();
            }
            if (failed != null && failed.at() - began > 0) {
                throw failed.why();
            }
            return make(maker);
        } finally {
            making.unlock();
        }
    }

    private byte[] make(Maker maker) throws Unavailable {
        long at = clock.getAsLong();
        try {
            byte[] bytes = maker.make();
            made = new Made(bytes, at);
            return bytes;
        } catch (Unavailable e) {
            failed = new Failed(e, clock.getAsLong());
            throw e;
        }
    }

    private boolean isYoung(Made one) {
        return one != null && clock.getAsLong() - one.at() < ttlNs;
    }
}
