package tare.social.files;

import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.TimeUnit;
import tare.common.client.Connection;

/** A connection to the file store. A wait is too long when nothing comes or goes in it. */
final class StoreConnection extends Connection {
    private static final String VERSION = "HTTP/1.1 ";
    private static final String LENGTH = "content-length:";
    private static final String CONNECTION = "connection:";
    private static final int HEAD_BYTES = 8 * 1024;
    private static final int BUFFER_BYTES = 64 * 1024;

    private final String host;
    private final long timeoutNs;
    // Outside the heap: the channel would copy from it.
    private final ByteBuffer buffer = ByteBuffer.allocateDirect(BUFFER_BYTES);
    private final byte[] copy = new byte[16 * 1024];
    private boolean answered;
    private boolean kept = true;
    private int status;
    /** Bytes of the body that have not been taken. */
    private long left;

    /** Connects. */
    StoreConnection(InetSocketAddress to, int timeoutMs) throws IOException {
        super(to, timeoutMs);
        host = versionAndHost(to);
        timeoutNs = TimeUnit.MILLISECONDS.toNanos(timeoutMs);
    }

    /** Asks for something, and reads how the answer begins. */
    void get(String path) throws IOException {
        ask("GET " + path + host + "\r\n", null, 0);
    }

    /** Puts something there, and reads how the answer begins. */
    void put(String path, InputStream body, long length) throws IOException {
        ask("PUT " + path + host + "Content-Length: " + length + "\r\n\r\n", body, length);
    }

    private void ask(String head, InputStream body, long length) throws IOException {
        answered = false;
        try {
            buffer.clear();
            byte[] bytes = head.getBytes(StandardCharsets.US_ASCII);
            if (bytes.length > HEAD_BYTES) {
                throw new IOException("the request is too long");
            }
            buffer.put(bytes);
            if (body != null) {
                send(body, length);
            }
            flush();
            receive();
        } catch (IOException e) {
            if (!fresh && !answered && !isLate()) {
                throw new Stale(e);
            }
            throw isLate() ? new IOException("no answer in time") : e;
        }
        fresh = false;
    }

    private void send(InputStream body, long length) throws IOException {
        long rest = length;
        while (rest > 0) {
            int count = body.read(copy, 0, (int) Math.min(rest, copy.length));
            if (count < 0) {
                throw new EOFException("what is to be stored is shorter than it was");
            }
            if (count > buffer.remaining()) {
                flush();
            }
            buffer.put(copy, 0, count);
            rest -= count;
        }
    }

    private void flush() throws IOException {
        buffer.flip();
        while (buffer.hasRemaining()) {
            waitUntil(System.nanoTime() + timeoutNs);
            channel.write(buffer);
            endWait();
        }
        buffer.clear();
    }

    private void fill() throws IOException {
        waitUntil(System.nanoTime() + timeoutNs);
        int count = channel.read(buffer);
        endWait();
        if (count < 0) {
            throw new EOFException("the store ended the connection");
        }
        answered = true;
    }

    /** Reads up to the end of the head: what follows of the body is in the buffer. */
    private void receive() throws IOException {
        int end = -1;
        while (end < 0) {
            if (buffer.position() >= HEAD_BYTES) {
                throw new IOException("the head of the store's answer is too long");
            }
            int from = Math.max(buffer.position() - 3, 0);
            fill();
            end = blank(from);
        }
        byte[] head = new byte[end];
        buffer.flip();
        buffer.get(head);
        read(new String(head, StandardCharsets.ISO_8859_1));
    }

    private int blank(int from) {
        for (int i = from; i + 3 < buffer.position(); i++) {
            if (buffer.get(i) == '\r' && buffer.get(i + 1) == '\n' && buffer.get(i + 2) == '\r'
                    && buffer.get(i + 3) == '\n') {
                return i + 4;
            }
        }
        return -1;
    }

    private void read(String head) throws IOException {
        status = head.startsWith(VERSION) && head.length() > 12 && " \r".indexOf(head.charAt(12)) >= 0
                ? (int) number(head.substring(VERSION.length(), 12)) : -1;
        if (status < 100 || status > 599) {
            throw new IOException("the store's answer is not HTTP/1.1");
        }
        left = -1;
        int at = head.indexOf("\r\n") + 2;
        // The head ends with an empty line.
        for (int end = head.indexOf("\r\n", at); end > at; end = head.indexOf("\r\n", at)) {
            if (head.regionMatches(true, at, LENGTH, 0, LENGTH.length())) {
                left = number(head.substring(at + LENGTH.length(), end).trim());
            } else if (head.regionMatches(true, at, CONNECTION, 0, CONNECTION.length())
                    && head.substring(at + CONNECTION.length(), end).trim().equalsIgnoreCase("close")) {
                kept = false;
            }
            at = end + 2;
        }
        if (left < 0) {
            throw new IOException("the store's answer has no length");
        }
        if (buffer.remaining() > left) {
            throw new IOException("the store's answer is longer than it says");
        }
    }

    /** A whole number of at most twelve digits; -1 for anything else. */
    private static long number(String text) {
        long number = text.isEmpty() || text.length() > 12 ? -1 : 0;
        for (int i = 0; number >= 0 && i < text.length(); i++) {
            int digit = text.charAt(i) - '0';
            number = digit < 0 || digit > 9 ? -1 : 10 * number + digit;
        }
        return number;
    }

    /** Of the answer. */
    int status() {
        return status;
    }

    /** Bytes of the answer's body that have not been taken. */
    long left() {
        return left;
    }

    /**
     * Takes some of the answer's body, at least a byte while there is any.
     *
     * @return valid until the next call
     */
    ByteBuffer some() throws IOException {
        if (!buffer.hasRemaining()) {
            buffer.clear();
            buffer.limit((int) Math.min(left, buffer.capacity()));
            try {
                fill();
            } catch (IOException e) {
                throw isLate() ? new IOException("the answer stopped") : e;
            }
            buffer.flip();
        }
        left -= buffer.remaining();
        return buffer;
    }

    @Override
    protected boolean isKept() {
        return kept && left == 0;
    }
}
