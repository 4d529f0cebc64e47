package tare.common.client;

import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.StandardSocketOptions;
import java.nio.channels.SocketChannel;

/**
 * A kept connection: HTTP/1.1, one request at a time. Reads and writes wait; the pool closes the connection when one waits too
 * long, which ends the wait.
 */
public abstract class Connection {
    /** The connection had ended before the request was seen: it may be sent again on another one. */
    public static final class Stale extends IOException {
        /** With what was seen of the end. */
        public Stale(Throwable why) {
            super("closed while it was idle", why);
        }
    }

    /** What is read from and written to. */
    protected final SocketChannel channel;
    /** Whether nothing has been answered on it yet. */
    protected boolean fresh = true;
    private volatile boolean late;
    /** When what it does now is too late, by System.nanoTime; 0 while it waits for nothing. */
    private volatile long deadline;

    /** Connects. */
    protected Connection(InetSocketAddress to, int timeoutMs) throws IOException {
        channel = SocketChannel.open();
        try {
            channel.setOption(StandardSocketOptions.TCP_NODELAY, true);
            channel.socket().connect(to, timeoutMs);
        } catch (IOException | RuntimeException e) {
            channel.close();
            throw e;
        }
    }

    /** What follows the address in a request's first line, with the header `Host`. */
    protected static String versionAndHost(InetSocketAddress server) {
        String name = server.getAddress().getHostAddress();
        return " HTTP/1.1\r\nHost: " + (name.contains(":") ? "[" + name + "]" : name) + ":" + server.getPort() + "\r\n";
    }

    /** A wait begins, which is too long at this time of System.nanoTime. */
    protected final void waitUntil(long time) {
        // 0 says that there is none.
        deadline = time | 1;
    }

    /** The wait is over. */
    protected final void endWait() {
        deadline = 0;
    }

    /** Whether a wait was too long, so that it was closed. */
    protected final boolean isLate() {
        return late;
    }

    /** Whether another request may be sent: the answer was read as a whole, and the server goes on. */
    protected abstract boolean isKept();

    /** Closes it where it waits for too long. */
    final void closeIfLate(long now) {
        long until = deadline;
        if (until != 0 && now - until > 0) {
            late = true;
            close();
        }
    }

    final void close() {
        try {
            channel.close();
        } catch (IOException e) {
            // It was to be given up.
        }
    }
}
