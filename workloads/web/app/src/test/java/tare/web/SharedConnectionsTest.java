package tare.web;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.Test;
import tare.common.client.BackendFailure;
import tare.web.backend.Backend;
import tare.web.backend.Reply;

/** A connection serves the next query as soon as a reply has been read; what was read must stay with who asked. */
class SharedConnectionsTest {
    private static FakeBackend echo() throws IOException {
        FakeBackend echo = new FakeBackend();
        echo.manner = FakeBackend.Manner.ECHO;
        return echo;
    }

    private static String shown(Reply reply) {
        StringBuilder all = new StringBuilder();
        for (int field = 0; field < reply.fields(); field++) {
            all.append(field == 0 ? "" : "&").append(new String(reply.bytes(), reply.begin(field),
                    reply.end(field) - reply.begin(field), StandardCharsets.ISO_8859_1));
        }
        return all.toString();
    }

    @Test
    void aReplyStaysAsItIsWhileAnotherThreadAsksOnItsConnection() throws Exception {
        try (FakeBackend echo = echo(); Backend backend = new Backend(echo.address(), 1, 10_000)) {
            Reply mine = backend.ask("banking&1&0000000017&aaaaaaaaaaaaaaaa");
            AtomicReference<String> other = new AtomicReference<>();
            Thread asking = new Thread(() -> {
                try {
                    other.set(shown(backend.ask("support&6&7&another-reply-on-the-same-connection")));
                } catch (BackendFailure e) {
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
        try (FakeBackend echo = echo(); Backend backend = new Backend(echo.address(), 2, 10_000)) {
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
        } catch (BackendFailure | InterruptedException e) {
            wrong.set(e.toString());
        }
    }
}
