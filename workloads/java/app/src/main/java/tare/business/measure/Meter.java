package tare.business.measure;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.util.concurrent.atomic.AtomicLongArray;
import java.util.concurrent.locks.LockSupport;

/**
 * What one thread did. The thread records without locks: it raises a flag, looks which of two recorders is in use,
 * writes into that one alone, and lowers the flag. Another thread opens and closes a window by exchanging the recorder
 * and waiting until the flag is down; from then on nobody writes to the one that was taken away. So an operation is
 * counted in a window, in its histograms and its count alike, or in none of them.
 */
public final class Meter {
    /** Counts of one side of the window's edges. */
    private static final class Recorder {
        private final Durations durations;
        private long operations;
        private long dropped;

        Recorder(Durations durations) {
            this.durations = durations;
        }
    }

    private static final VarHandle OPERATIONS = handle();

    private final Recorder outside = new Recorder(null);
    private final Recorder window = new Recorder(new Durations());
    private final AtomicLongArray byKind;
    private volatile Recorder recorder = outside;
    private volatile boolean writing;
    private long earlier;
    private long before;

    /** A meter for transactions of so many kinds. */
    public Meter(int kinds) {
        byKind = new AtomicLongArray(kinds);
    }

    private static VarHandle handle() {
        try {
            return MethodHandles.lookup().findVarHandle(Recorder.class, "operations", long.class);
        } catch (ReflectiveOperationException e) {
            throw new ExceptionInInitializerError(e);
        }
    }

    /**
     * By the measured thread: an operation is done. Times are of {@link System#nanoTime}.
     *
     * @param intended when it was to start
     * @param started when it did
     * @param ended when it was done
     */
    public void operation(int kind, long intended, long started, long ended) {
        writing = true;
        Recorder current = recorder;
        Durations durations = current.durations;
        if (durations != null) {
            durations.response.record(ended - intended);
            durations.service.record(ended - started);
            durations.lateness.record(started - intended);
        }
        byKind.lazySet(kind, byKind.getPlain(kind) + 1);
        OPERATIONS.setRelease(current, current.operations + 1);
        writing = false;
    }

    /** By the measured thread: so many starts were missed. */
    public void dropped(long starts) {
        writing = true;
        recorder.dropped += starts;
        writing = false;
    }

    /** By the controlling thread: a window begins. Returns the operations done before it. */
    public long begin() {
        exchange(outside);
        earlier += window.operations;
        window.durations.clear();
        window.operations = 0;
        window.dropped = 0;
        exchange(window);
        before = earlier + outside.operations;
        return before;
    }

    /** By the controlling thread: the window ends. Returns the operations done when it did. */
    public long end() {
        exchange(outside);
        return before + window.operations;
    }

    private void exchange(Recorder next) {
        recorder = next;
        // The thread may have lost its CPU while it wrote, perhaps to this one.
        while (writing) {
            LockSupport.parkNanos(1_000);
        }
    }

    /** Operations done. */
    public long operations() {
        return earlier + (long) OPERATIONS.getAcquire(outside) + (long) OPERATIONS.getAcquire(window);
    }

    /** Operations done of a kind. */
    public long operations(int kind) {
        return byKind.get(kind);
    }

    /** Starts missed in the last window, once it has ended. */
    public long dropped() {
        return window.dropped;
    }

    /** Durations of the last window, once it has ended. */
    public Durations durations() {
        return window.durations;
    }
}
