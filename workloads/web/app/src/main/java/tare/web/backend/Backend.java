package tare.web.backend;

import java.io.IOException;
import java.net.InetSocketAddress;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import tare.common.Json;
import tare.common.client.BackendFailure;
import tare.common.client.ConnectionPool;

/** The application's database, as far as pages are concerned. */
public final class Backend implements AutoCloseable {
    private static final long CHECK_MS = 100;

    private final ConnectionPool<BackendConnection> pool;
    private final int timeoutMs;
    private final Semaphore free;
    private final ThreadLocal<Reply> replies = ThreadLocal.withInitial(Reply::new);
    private final Latencies latencies = new Latencies();

    /**
     * Connects to nobody yet.
     *
     * @param connections at most
     * @param timeoutMs after which a query has failed, milliseconds: waiting for a connection, and as long again for
     * the reply
     */
    public Backend(InetSocketAddress address, int connections, int timeoutMs) {
        this.timeoutMs = timeoutMs;
        free = new Semaphore(connections);
        pool = new ConnectionPool<>("backend", address, CHECK_MS, () -> new BackendConnection(address, timeoutMs));
    }

    /** Asks. The reply is valid until the calling thread asks again. */
    public Reply ask(String query) throws BackendFailure {
        pool.countCall();
        Reply reply = replies.get();
        try {
            if (!free.tryAcquire() && !free.tryAcquire(timeoutMs, TimeUnit.MILLISECONDS)) {
                throw new BackendFailure("no connection to the backend became free in time");
            }
            try {
                exchange(query, reply);
            } finally {
                free.release();
            }
            return reply;
        } catch (BackendFailure e) {
            pool.countError();
            throw e;
        } catch (InterruptedException e) {
            pool.countError();
            Thread.currentThread().interrupt();
            throw new BackendFailure("the server ends");
        }
    }

    private void exchange(String query, Reply reply) throws BackendFailure {
        long began = System.nanoTime();
        BackendConnection link = null;
        try {
            link = pool.take();
            try {
                link.ask(query, until(began), reply);
            } catch (BackendConnection.Stale e) {
                link = pool.replace(link);
                link.ask(query, until(began), reply);
            }
            latencies.record(System.nanoTime() - began);
        } catch (IOException e) {
            pool.drop(link);
            throw new BackendFailure("no reply from the backend " + pool.serverAnd(e));
        } catch (BackendFailure | RuntimeException e) {
            pool.drop(link);
            throw e;
        }
        pool.give(link);
    }

    private long until(long began) {
        return began + TimeUnit.MILLISECONDS.toNanos(timeoutMs);
    }

    /** Queries, failed ones too. */
    public long calls() {
        return pool.calls();
    }

    /** Queries that failed. */
    public long errors() {
        return pool.errors();
    }

    /** Writes queries, and the seconds that replies took: all together, and the 99th percentile. */
    public void report(Json out) {
        out.put("backend_calls", calls()).put("backend_errors", errors()).put("backend_seconds", latencies.sum() / 1e9)
                .put("backend_p99_seconds", latencies.quantile(0.99) / 1e9);
    }

    @Override
    public void close() {
        pool.close();
    }
}
