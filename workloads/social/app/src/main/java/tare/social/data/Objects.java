package tare.social.data;

import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.LongAdder;
import java.util.function.LongSupplier;

/**
 * Objects that were read from the database: kept for a time, the longest unused give way when there are too many, and
 * those that have changed are cleared. What is read while it is being changed is not kept.
 */
public final class Objects {
    /** A cached object says about how much memory it takes. */
    public interface Sized {
        /** Bytes, about. */
        int bytes();
    }

    /** What objects are of. */
    enum Kind {
        EVENT,
        PERSON,
        TAG,
        TAGS,
        ATTENDS
    }

    /**
     * What an object is kept under.
     *
     * @param of number or name; empty where there is only one
     */
    record Key(Kind kind, Object of) {}

    /** Reads an object; null where there is none. */
    @FunctionalInterface
    interface Source<T> {
        T read() throws Unavailable;
    }

    private static final int STRIPES = 16;
    /** What an entry takes beside the object, about, bytes. */
    private static final int BESIDE = 150;

    private record Entry(Sized value, long until, int bytes) {}

    /** Some of the keys, with a lock of their own. */
    private static final class Stripe {
        private final Map<Key, Entry> entries = new LinkedHashMap<>(16, 0.75f, true);
        private long bytes;
        /** How often something here was cleared: what was read before the last time may be old. */
        private long cleared;

        private void remove(Key key) {
            Entry old = entries.remove(key);
            if (old != null) {
                bytes -= old.bytes();
            }
        }
    }

    private final Stripe[] stripes = new Stripe[STRIPES];
    private final LongSupplier clock;
    private final long ttlNs;
    private final long stripeBytes;
    private final LongAdder hits = new LongAdder();
    private final LongAdder misses = new LongAdder();

    /**
     * Empty.
     *
     * @param ttlS seconds for which an object is kept; 0 keeps none
     * @param bytes that all take, at most and about
     */
    public Objects(int ttlS, long bytes) {
        this(ttlS, bytes, System::nanoTime);
    }

    /**
     * With another clock.
     *
     * @param clock nanoseconds since whenever
     */
    Objects(int ttlS, long bytes, LongSupplier clock) {
        this.clock = clock;
        ttlNs = TimeUnit.SECONDS.toNanos(ttlS);
        stripeBytes = bytes / STRIPES;
        for (int i = 0; i < STRIPES; i++) {
            stripes[i] = new Stripe();
        }
    }

    private Stripe stripe(Key key) {
        int hash = key.hashCode() * 0x9e37_79b9;
        return stripes[hash >>> 28];
    }

    /** The object; read where it is not here. Null where the source has none, which is not kept. */
    @SuppressWarnings("unchecked") // Of a kind there is one class.
    <T extends Sized> T get(Kind kind, Object of, Source<T> source) throws Unavailable {
        Key key = new Key(kind, of);
        Stripe stripe = stripe(key);
        long cleared;
        synchronized (stripe) {
            Entry entry = stripe.entries.get(key);
            if (entry != null && entry.until() - clock.getAsLong() > 0) {
                hits.increment();
                return (T) entry.value();
            }
            cleared = stripe.cleared;
        }
        misses.increment();
        T value = source.read();
        if (value != null && ttlNs > 0) {
            put(stripe, key, value, cleared);
        }
        return value;
    }

    private void put(Stripe stripe, Key key, Sized value, long cleared) {
        int bytes = value.bytes() + BESIDE;
        if (bytes > stripeBytes) {
            return;
        }
        synchronized (stripe) {
            if (stripe.cleared != cleared) {
                return;
            }
            stripe.remove(key);
            stripe.entries.put(key, new Entry(value, clock.getAsLong() + ttlNs, bytes));
            stripe.bytes += bytes;
            Iterator<Entry> oldest = stripe.entries.values().iterator();
            while (stripe.bytes > stripeBytes && oldest.hasNext()) {
                stripe.bytes -= oldest.next().bytes();
                oldest.remove();
            }
        }
    }

    /** It has changed in the database, for all to see. */
    void clear(Kind kind, Object of) {
        Key key = new Key(kind, of);
        Stripe stripe = stripe(key);
        synchronized (stripe) {
            stripe.cleared++;
            stripe.remove(key);
        }
    }

    /** How often an object was here. */
    public long hits() {
        return hits.sum();
    }

    /** How often it was not. */
    public long misses() {
        return misses.sum();
    }

    /** What is kept takes so much memory, about, bytes. */
    public long bytes() {
        long all = 0;
        for (Stripe stripe : stripes) {
            synchronized (stripe) {
                all += stripe.bytes;
            }
        }
        return all;
    }
}
