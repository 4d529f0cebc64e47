package tare.common.client;

import java.io.IOException;
import java.net.InetSocketAddress;
import java.util.ArrayDeque;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.LongAdder;
import tare.common.Causes;

/**
 * Kept connections to one server. The one that was used last is used next, so that there are no more than are needed at once.
 *
 * @param <C> their kind
 */
public final class ConnectionPool<C extends Connection> implements AutoCloseable {
    private final InetSocketAddress server;
    private final Opener<C> opener;
    private final long checkMs;
    private final ArrayDeque<C> idle = new ArrayDeque<>();
    private final Set<C> all = ConcurrentHashMap.newKeySet();
    private final LongAdder calls = new LongAdder();
    private final LongAdder errors = new LongAdder();
    private final Thread watch;

    /**
     * Opens a connection.
     *
     * @param <C> its kind
     */
    @FunctionalInterface
    public interface Opener<C> {
        /** Connects. */
        C open() throws IOException;
    }

    /**
     * Connects to nobody yet.
     *
     * @param checkMs how often waits that are too long are looked for, milliseconds
     */
    public ConnectionPool(String name, InetSocketAddress server, long checkMs, Opener<C> opener) {
        this.server = server;
        this.opener = opener;
        this.checkMs = checkMs;
        watch = new Thread(this::watch, name + "-watch");
        watch.setDaemon(true);
        watch.start();
    }

    private void watch() {
        try {
            while (true) {
                Thread.sleep(checkMs);
                long now = System.nanoTime();
                all.forEach(connection -> connection.closeIfLate(now));
            }
        } catch (InterruptedException e) {
            // Closed.
        }
    }

    /** An idle connection, or a new one. */
    public C take() throws IOException {
        synchronized (idle) {
            C connection = idle.pollLast();
            if (connection != null) {
                return connection;
            }
        }
        return open();
    }

    /** A new connection in place of one that ended while it was idle: it cannot have been idle too long. */
    public C replace(C stale) throws IOException {
        drop(stale);
        return open();
    }

    private C open() throws IOException {
        C connection = opener.open();
        all.add(connection);
        return connection;
    }

    /** Keeps a connection for others, where another request may be sent on it. */
    public void give(C connection) {
        if (connection.isKept()) {
            synchronized (idle) {
                idle.addLast(connection);
            }
        } else {
            drop(connection);
        }
    }

    /** Closes a connection that is of no use any more; null is none. */
    public void drop(C connection) {
        if (connection != null) {
            all.remove(connection);
            connection.close();
        }
    }

    /** Counts a request. */
    public void countCall() {
        calls.increment();
    }

    /** Counts a request that failed. */
    public void countError() {
        errors.increment();
    }

    /** Requests, failed ones too. */
    public long calls() {
        return calls.sum();
    }

    /** Requests that failed. */
    public long errors() {
        return errors.sum();
    }

    /** The server's address and what went wrong, as messages of failures have it. */
    public String serverAnd(IOException why) {
        return server.getAddress().getHostAddress() + ":" + server.getPort() + ": " + Causes.message(why);
    }

    @Override
    public void close() {
        watch.interrupt();
        all.forEach(Connection::close);
    }
}
