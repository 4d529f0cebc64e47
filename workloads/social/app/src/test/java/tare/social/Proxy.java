package tare.social;

import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.atomic.AtomicInteger;
import tare.testing.TestServer;

/** Between the application and its database: can lose connections, refuse new ones, and let nothing or no answer through. */
final class Proxy implements AutoCloseable {
    private final TestServer server = new TestServer(this::pass);
    private final int to;
    private volatile boolean cut;
    private volatile boolean silent;
    private volatile boolean deaf;
    /** How often something was asked. */
    final AtomicInteger asked = new AtomicInteger();
    /** What is asked with this is the last that is answered; null for nothing. */
    private volatile String last;

    Proxy(int to) throws IOException {
        this.to = to;
    }

    int port() {
        return server.port();
    }

    /** Ends all connections, and each new one, until it is mended. */
    void cut() {
        cut = true;
        server.hangUp();
    }

    /** Nothing comes through any more. */
    void silence() {
        silent = true;
    }

    /** What is asked with that word arrives, and from then on no answer comes back. */
    void loseAnswerTo(String word) {
        last = word;
    }

    /** New connections are well again. */
    void mend() {
        last = null;
        deaf = false;
        silent = false;
        cut = false;
    }

    private void pass(Socket here) throws IOException {
        if (!cut) {
            Socket there = new Socket(InetAddress.getLoopbackAddress(), to);
            TestServer.daemon(() -> pump(there, here, false));
            pump(here, there, true);
        }
    }

    private void pump(Socket from, Socket into, boolean asks) {
        byte[] buffer = new byte[8 * 1024];
        try (InputStream in = from.getInputStream(); OutputStream out = into.getOutputStream()) {
            for (int count = in.read(buffer); count >= 0; count = in.read(buffer)) {
                if (asks) {
                    asked.incrementAndGet();
                }
                String word = last;
                if (asks && word != null && new String(buffer, 0, count, StandardCharsets.ISO_8859_1).contains(word)) {
                    deaf = true;
                }
                if (!silent && (asks || !deaf)) {
                    out.write(buffer, 0, count);
                }
            }
        } catch (IOException e) {
            // One of them has ended.
        }
    }

    @Override
    public void close() throws IOException {
        server.close();
    }
}
