package tare.web.backend;

import java.io.IOException;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import tare.common.client.BackendFailure;
import tare.common.client.Connection;

/** A connection to the backend, on which pages' queries are asked. */
final class BackendConnection extends Connection {
    /** A reply is a small page. */
    private static final int MOST = 64 * 1024;
    private static final byte[] WELL = bytes("HTTP/1.1 200");
    private static final byte[] LENGTH = bytes("content-length:");
    private static final byte[] CLOSE = bytes("connection: close");

    private final byte[] host;
    // Outside the heap: the channel would copy from it.
    private final ByteBuffer out = ByteBuffer.allocateDirect(4 * 1024);
    private final ByteBuffer in = ByteBuffer.allocateDirect(MOST);
    private final byte[] answer = new byte[MOST];
    private int answered;
    private boolean kept = true;

    private static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.ISO_8859_1);
    }

    /** Connects. */
    BackendConnection(InetSocketAddress to, int timeoutMs) throws IOException {
        super(to, timeoutMs);
        host = bytes(versionAndHost(to) + "\r\n");
    }

    /**
     * Asks, and reads the reply's fields. Whatever is thrown, the connection is not to be used again.
     *
     * @param until when it has taken too long, by System.nanoTime
     */
    void ask(String query, long until, Reply reply) throws IOException, BackendFailure {
        waitUntil(until);
        try {
            send(query);
            receive(reply);
        } catch (IOException e) {
            if (isLate()) {
                throw new BackendFailure("the backend did not reply in time");
            }
            if (!fresh && answered == 0) {
                throw new Stale(e);
            }
            throw e;
        } finally {
            endWait();
        }
        fresh = false;
    }

    private void send(String query) throws IOException, BackendFailure {
        answered = 0;
        out.clear();
        if (query.length() > out.capacity() - host.length - 16) {
            throw new BackendFailure("the query is too long");
        }
        out.put((byte) 'G').put((byte) 'E').put((byte) 'T').put((byte) ' ').put((byte) '/').put((byte) '?');
        for (int i = 0; i < query.length(); i++) {
            out.put((byte) query.charAt(i));
        }
        out.put(host).flip();
        while (out.hasRemaining()) {
            channel.write(out);
        }
    }

    private void more() throws IOException, BackendFailure {
        if (answered == MOST) {
            throw new BackendFailure("the backend's reply is longer than " + MOST + " bytes");
        }
        in.clear().limit(MOST - answered);
        int count = channel.read(in);
        if (count < 0) {
            throw new IOException("the backend ended the connection");
        }
        in.flip().get(answer, answered, count);
        answered += count;
    }

    private void receive(Reply reply) throws IOException, BackendFailure {
        int body = -1;
        for (int from = 0; body < 0; from = Math.max(0, answered - 3)) {
            more();
            body = blank(from);
        }
        if (!starts(0, WELL, body)) {
            String said = new String(answer, 0, Math.min(line(0), 60), StandardCharsets.ISO_8859_1);
            throw new BackendFailure("the backend answered '" + said.stripTrailing() + "'");
        }
        int end = body + length(body);
        while (answered < end) {
            more();
        }
        // More than the reply cannot be the reply to anything.
        kept &= answered == end;
        reply.read(answer, body, end);
    }

    /** Where the body begins: after the first empty line; -1 while it has not come. */
    private int blank(int from) {
        for (int i = from; i + 3 < answered; i++) {
            if (answer[i] == '\r' && answer[i + 1] == '\n' && answer[i + 2] == '\r' && answer[i + 3] == '\n') {
                return i + 4;
            }
        }
        return -1;
    }

    private int line(int from) {
        int at = from;
        while (at < answered && answer[at] != '\n') {
            at++;
        }
        return at;
    }

    private int length(int body) throws BackendFailure {
        int length = -1;
        for (int at = line(0) + 1; at < body - 2; at = line(at) + 1) {
            if (starts(at, LENGTH, body)) {
                length = number(at + LENGTH.length);
            } else if (starts(at, CLOSE, body)) {
                kept = false;
            }
        }
        if (length < 0 || length > MOST - body) {
            throw new BackendFailure("the backend's reply has no length, or one over " + MOST + " bytes");
        }
        return length;
    }

    private int number(int from) {
        int at = from;
        while (answer[at] == ' ') {
            at++;
        }
        int number = 0;
        int digits = at;
        while (answer[at] >= '0' && answer[at] <= '9' && at - digits < 9) {
            number = number * 10 + answer[at++] - '0';
        }
        return at == digits || answer[at] != '\r' ? -1 : number;
    }

    /** Whether the answer has these lower-case letters there, in either case. */
    private boolean starts(int at, byte[] what, int end) {
        if (at + what.length > end) {
            return false;
        }
        for (int i = 0; i < what.length; i++) {
            byte one = answer[at + i];
            if (one != what[i] && (one < 'A' || one > 'Z' || one + 32 != what[i])) {
                return false;
            }
        }
        return true;
    }

    @Override
    protected boolean isKept() {
        return kept;
    }
}
