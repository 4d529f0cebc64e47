package tare.web.backend;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.Test;

/** A connection serves the next query as soon as a reply has been read; what was read must stay with who asked. */
class SharedLinksTest {
    /** Echoes each query as the fields of its reply, until its socket is closed. */
    private static void echo(Socket socket) {
        try (socket) {
            BufferedReader in = new BufferedReader(new InputStreamReader(socket.getInputStream(),
                    StandardCharsets.ISO_8859_1));
            OutputStream out = socket.getOutputStream();
            for (String line = in.readLine(); line != null; line = in.readLine()) {
                String query = line.replaceFirst("GET /\\?", "").replaceFirst(" HTTP/1.1$", "");
                while (!in.readLine().isEmpty()) {
                    // Nothing of the head is of interest.
                }
                String body = "<html><head><title>backend</title></head><body><pre>\n0\n" + query
                        + "\n</pre></body></html>\n";
                out.write(("HTTP/1.1 200 OK\r\nContent-Length: " + body.length() + "\r\n\r\n" + body)
                        .getBytes(StandardCharsets.ISO_8859_1));
            }
        } catch (IOException e) {
            // Closed.
        }
    }

    private static void daemon(Runnable what) {
        Thread thread = new Thread(what, "echo");
        thread.setDaemon(true);
        thread.start();
    }

    private static void accept(ServerSocket listening) {
        try {
            while (true) {
                Socket socket = listening.accept();
                daemon(() -> echo(socket));
            }
        } catch (IOException e) {
            // Closed.
        }
    }

    private static String shown(Reply reply) {
        StringBuilder all = new StringBuilder();
        for (int field = 0; field < reply.fields(); field++) {
            all.append(field == 0 ? "" : "&").append(new String(reply.bytes(), reply.begin(field),
                    reply.end(field) - reply.begin(field), StandardCharsets.ISO_8859_1));
        }
        return all.toString();
    }

    private static ServerSocket listening() throws IOException {
        ServerSocket listening = new ServerSocket(0, 100, InetAddress.getLoopbackAddress());
        daemon(() -> accept(listening));
        return listening;
    }

    @Test
    void aReplyStaysAsItIsWhileAnotherThreadAsksOnItsConnection() throws Exception {
        try (ServerSocket listening = listening();
                Backend backend = new Backend((InetSocketAddress) listening.getLocalSocketAddress(), 1, 10_000)) {
            Reply mine = backend.ask("banking&1&0000000017&aaaaaaaaaaaaaaaa");
            AtomicReference<String> other = new AtomicReference<>();
            Thread asking = new Thread(() -> {
                try {
                    other.set(shown(backend.ask("support&6&7&another-reply-on-the-same-connection")));
                } catch (Failed e) {
                    other.set(e.getMessage());
                }
            });
            asking.start();
            asking.join();
            assertEquals("support&6&7&another-reply-on-the-same-connection", other.get());
            assertEquals("banking&1&0000000017&aaaaaaaaaaaaaaaa", shown(mine));
            assertEquals(0, backend.errors());
        }
    }

    @Test
    void manyThreadsOnFewConnectionsReadTheirOwnReplies() throws Exception {
        int threads = 16;
        try (ServerSocket listening = listening();
                Backend backend = new Backend((InetSocketAddress) listening.getLocalSocketAddress(), 2, 10_000)) {
            CountDownLatch begin = new CountDownLatch(1);
            AtomicReference<String> wrong = new AtomicReference<>();
            var workers = Executors.newFixedThreadPool(threads);
            for (int number = 0; number < threads; number++) {
                String name = "user-" + number + "-" + "x".repeat(1 + 7 * number);
                workers.execute(() -> ask(backend, name, begin, wrong));
            }
            begin.countDown();
            workers.shutdown();
            assertEquals(true, workers.awaitTermination(60, TimeUnit.SECONDS));
            assertNull(wrong.get());
        }
    }

    /** Asks again and again, and looks at each reply only after others had the time to ask. */
    private static void ask(Backend backend, String name, CountDownLatch begin, AtomicReference<String> wrong) {
        try {
            begin.await();
            for (int i = 0; i < 300 && wrong.get() == null; i++) {
                String query = name + "&" + i;
                Reply reply = backend.ask(query);
                Thread.yield();
                String shown = shown(reply);
                if (!shown.equals(query)) {
                    wrong.set("asked " + query + ", was shown " + shown);
                }
            }
        } catch (Failed | InterruptedException e) {
            wrong.set(e.toString());
        }
    }
}
