package tare.web.backend;

import java.io.IOException;
import java.net.InetSocketAddress;
import java.util.ArrayDeque;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.LongAdder;

/**
 * The application's database, as far as pages are concerned: kept connections, each with one query at a time. The one
 * that was used last is used next, so that there are no more than are needed at once.
 */
public final class Backend implements AutoCloseable {
    private static final long LOOK_MS = 100;

    private final InetSocketAddress address;
    private final int timeoutMs;
    private final Semaphore free;
    private final ArrayDeque<Link> idle = new ArrayDeque<>();
    private final Set<Link> all = ConcurrentHashMap.newKeySet();
    private final ThreadLocal<Reply> replies = ThreadLocal.withInitial(Reply::new);
    private final Latencies latencies = new Latencies();
    private final LongAdder calls = new LongAdder();
    private final LongAdder errors = new LongAdder();
    private final Thread watch;

    /**
     * Connects to nobody yet.
     *
     * @param connections at most
     * @param timeoutMs after which a query has failed, milliseconds: waiting for a connection, and as long again for
     * the reply
     */
    public Backend(InetSocketAddress address, int connections, int timeoutMs) {
        this.address = address;
        this.timeoutMs = timeoutMs;
        free = new Semaphore(connections);
        watch = new Thread(this::watch, "backend-watch");
        watch.setDaemon(true);
        watch.start();
    }

    private void watch() {
        try {
            while (true) {
                Thread.sleep(LOOK_MS);
                long now = System.nanoTime();
                all.forEach(link -> link.hurry(now));
            }
        } catch (InterruptedException e) {
            // Closed.
        }
    }

    /** Asks. The reply is valid until the calling thread asks again. */
    public Reply ask(String query) throws Failed {
        calls.increment();
        Reply reply = replies.get();
        try {
            if (!free.tryAcquire() && !free.tryAcquire(timeoutMs, TimeUnit.MILLISECONDS)) {
                throw new Failed("no connection to the backend became free in time");
            }
            try {
                exchange(query, reply);
            } finally {
                free.release();
            }
            return reply;
        } catch (Failed e) {
            errors.increment();
            throw e;
        } catch (InterruptedException e) {
            errors.increment();
            Thread.currentThread().interrupt();
            throw new Failed("the server ends");
        }
    }

    private void exchange(String query, Reply reply) throws Failed {
        long began = System.nanoTime();
        Link link = null;
        try {
            link = take();
            try {
                link.ask(query, until(began), reply);
            } catch (Link.Stale e) {
                drop(link);
                // Once more, on one that cannot have been idle too long.
                link = open();
                link.ask(query, until(began), reply);
            }
            latencies.record(System.nanoTime() - began);
        } catch (IOException e) {
            drop(link);
            throw new Failed("no reply from the backend " + address.getAddress().getHostAddress() + ":"
                    + address.getPort() + ": "
                    + (e.getMessage() == null ? e.getClass().getSimpleName() : e.getMessage()));
        } catch (Failed | RuntimeException e) {
            drop(link);
            throw e;
        }
        give(link);
    }

    private long until(long began) {
        // 0 says that there is none.
        return (began + TimeUnit.MILLISECONDS.toNanos(timeoutMs)) | 1;
    }

    private Link take() throws IOException {
        synchronized (idle) {
            Link link = idle.pollLast();
            if (link != null) {
                return link;
            }
        }
        return open();
    }

    private Link open() throws IOException {
        Link link = new Link(address, timeoutMs);
        all.add(link);
        return link;
    }

    private void give(Link link) {
        if (link.kept()) {
            synchronized (idle) {
                idle.addLast(link);
            }
        } else {
            drop(link);
        }
    }

    private void drop(Link link) {
        if (link != null) {
            all.remove(link);
            link.close();
        }
    }

    /** Queries, failed ones too. */
    public long calls() {
        return calls.sum();
    }

    /** Queries that failed. */
    public long errors() {
        return errors.sum();
    }

    /** Time spent waiting for replies that came, seconds. */
    public double seconds() {
        return latencies.sum() / 1e9;
    }

    /** 99th percentile of the time that a reply took, seconds. */
    public double p99Seconds() {
        return latencies.quantile(0.99) / 1e9;
    }

    @Override
    public void close() {
        watch.interrupt();
        all.forEach(Link::close);
    }
}
