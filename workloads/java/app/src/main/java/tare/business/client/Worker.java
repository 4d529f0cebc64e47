package tare.business.client;

import java.util.concurrent.CountDownLatch;
import java.util.concurrent.SynchronousQueue;
import java.util.concurrent.locks.LockSupport;
import tare.business.logic.Kind;
import tare.business.logic.Session;
import tare.business.measure.Meter;

/** The thread of a data group. It lives as long as the application, and works between start and stop. */
final class Worker extends Thread {
    /** A thread that is further behind its schedule drops the starts that it missed. */
    static final long MOST_BEHIND_NANOS = 1_000_000_000L;

    private final Session session;
    private final Meter meter = new Meter(Kind.values().length);
    private final SynchronousQueue<Work> queue = new SynchronousQueue<>();
    private volatile Throwable failure;

    /** From start to stop. A schedule of `null` is work without pause. */
    private static final class Work {
        private final Schedule schedule;
        private final CountDownLatch ended = new CountDownLatch(1);
        private volatile boolean stopping;

        Work(Schedule schedule) {
            this.schedule = schedule;
        }
    }

    private Work work;

    Worker(int number, Session session) {
        super("group-" + number);
        this.session = session;
        setDaemon(true);
    }

    /** By the controlling thread: begins to work, `null` without pause. */
    void begin(Schedule schedule) throws InterruptedException {
        work = new Work(schedule);
        queue.put(work);
    }

    /** By the controlling thread: asks for the end, which comes with the operation that is under way. */
    void askToStop() {
        work.stopping = true;
        LockSupport.unpark(this);
    }

    /** By the controlling thread: waits for the end. */
    void awaitEnd() throws InterruptedException {
        work.ended.await();
    }

    Session session() {
        return session;
    }

    Meter meter() {
        return meter;
    }

    /** What ended the thread's work before it was asked to; `null`: nothing did. */
    Throwable failure() {
        return failure;
    }

    @Override
    public void run() {
        try {
            while (true) {
                Work next = queue.take();
                try {
                    if (failure == null) {
                        work(next);
                    }
                } catch (RuntimeException | Error e) {
                    // What is left of the group is of no use, and nobody may think that it is idle.
                    failure = e;
                } finally {
                    next.ended.countDown();
                }
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    private void work(Work work) {
        if (work.schedule == null) {
            while (!work.stopping) {
                long start = System.nanoTime();
                operation(start, start);
            }
            return;
        }
        while (true) {
            long intended = work.schedule.next();
            long now = await(work, intended);
            if (work.stopping) {
                return;
            }
            if (now - intended > MOST_BEHIND_NANOS) {
                meter.dropped(work.schedule.skipTo(now));
            } else {
                work.schedule.advance();
                operation(intended, now);
            }
        }
    }

    /** Waits for a moment, or the end of work. Returns the time. */
    private static long await(Work work, long moment) {
        long now = System.nanoTime();
        while (now < moment && !work.stopping) {
            LockSupport.parkNanos(work, moment - now);
            now = System.nanoTime();
        }
        return now;
    }

    private void operation(long intended, long started) {
        Kind kind = session.deal();
        session.perform(kind);
        meter.operation(kind.ordinal(), intended, started, System.nanoTime());
    }
}
