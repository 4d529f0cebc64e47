package tare.social;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.io.InputStream;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Those who ask for long files and do not take them. Where they hold threads nothing is answered any more. */
@Timeout(150)
class ReadersTest {
    /** Shorter than the container waits for a reader: by then others would be served whatever held the threads. */
    private static final int SOON_S = 40;
    /** What must come at last, whatever the machine does meanwhile. */
    private static final int HANG_S = 60;
    private static final int LONG = 8_000_000;
    private static final String IDLER = "/image/event/1.jpg";

    /** Asks for it, and reads nothing. */
    private static Socket ask(Site site, String path) throws IOException {
        Socket socket = new Socket();
        socket.setReceiveBufferSize(8 * 1024);
        socket.connect(new InetSocketAddress(InetAddress.getLoopbackAddress(), site.server.port()));
        socket.getOutputStream().write(("GET " + path + " HTTP/1.1\r\nHost: x\r\n\r\n").getBytes(StandardCharsets.US_ASCII));
        return socket;
    }

    private static void waitUntil(Site site, String name, double value) throws Exception {
        long until = System.nanoTime() + TimeUnit.SECONDS.toNanos(HANG_S);
        while (site.stat(name) != value) {
            assertTrue(System.nanoTime() < until, name + " is " + site.stat(name) + ", not " + value);
            Thread.sleep(10);
        }
    }

    private static HttpResponse<byte[]> soon(Site site, String path) throws Exception {
        return CompletableFuture.supplyAsync(() -> {
            try {
                return site.bytes(path);
            } catch (Exception e) {
                throw new IllegalStateException(e);
            }
        }).get(SOON_S, TimeUnit.SECONDS);
    }

    /** The body of an answer with that length. */
    private static byte[] body(Socket socket, int length) throws IOException {
        InputStream in = socket.getInputStream();
        StringBuilder head = new StringBuilder();
        while (head.indexOf("\r\n\r\n") < 0) {
            head.append((char) in.read());
        }
        assertTrue(head.toString().startsWith("HTTP/1.1 200") && head.indexOf("Content-Length: " + length) > 0,
                head.toString());
        return in.readNBytes(length);
    }

    @Test
    void thoseWhoTakeNothingHoldNoThread() throws Exception {
        int idlers = 30;
        try (Site site = new Site("--threads", "4")) {
            byte[] picture = Site.file(LONG, 1);
            site.store.kept.put("/3" + IDLER.substring("/image".length()), picture);
            site.store.kept.put("/3/event/2.jpg", Site.file(669_128, 2));
            site.store.kept.put("/3/event/2t.jpg", Site.file(5_895, 3));
            List<Socket> sockets = new ArrayList<>();
            for (int i = 0; i < idlers; i++) {
                sockets.add(ask(site, IDLER));
            }
            waitUntil(site, "stored_under_way", idlers);
            assertEquals(200, soon(site, "/").statusCode());
            assertEquals(200, soon(site, "/event?id=1").statusCode());
            assertEquals(200, soon(site, "/static/site/00.js").statusCode());
            assertArrayEquals(Site.file(669_128, 2), soon(site, "/image/event/2.jpg").body());
            assertArrayEquals(Site.file(5_895, 3), soon(site, "/image/event/2t.jpg").body());
            assertEquals(idlers, site.stat("stored_under_way"), "they have waited all the time");
            for (Socket socket : sockets) {
                assertTrue(Arrays.equals(picture, body(socket, LONG)), "what they have waited with is right");
            }
            waitUntil(site, "stored_under_way", 0);
            assertEquals(idlers + 2, site.stat("stored_files"));
            assertEquals(0.0, site.stat("errors"));
            // The connection goes on after it.
            sockets.get(0).getOutputStream().write("GET /image/event/2t.jpg HTTP/1.1\r\nHost: x\r\n\r\n".getBytes(StandardCharsets.US_ASCII));
            assertArrayEquals(Site.file(5_895, 3), body(sockets.get(0), 5_895));
            for (Socket socket : sockets) {
                socket.close();
            }
        }
    }

    @Test
    void nothingStaysOfThoseWhoGo() throws Exception {
        int idlers = 10;
        try (Site site = new Site("--threads", "4")) {
            site.store.kept.put("/3" + IDLER.substring("/image".length()), Site.file(LONG, 1));
            for (int round = 0; round < 3; round++) {
                List<Socket> sockets = new ArrayList<>();
                for (int i = 0; i < idlers; i++) {
                    sockets.add(ask(site, IDLER));
                }
                waitUntil(site, "stored_under_way", idlers);
                for (Socket socket : sockets) {
                    socket.close();
                }
                waitUntil(site, "stored_under_way", 0);
            }
            assertEquals(0.0, site.stat("stored_files"));
            assertEquals(0.0, site.stat("store_errors"), "the store did its part");
        }
    }

    /** With one thread no long file may hold it, with four two may. */
    @ParameterizedTest
    @ValueSource(strings = {"1", "4"})
    void theStoreIsNotSaidToBeSlowWhereTheReaderIs(String threads) throws Exception {
        try (Site site = new Site("--threads", threads)) {
            site.store.kept.put("/3" + IDLER.substring("/image".length()), Site.file(LONG, 1));
            try (Socket socket = ask(site, IDLER)) {
                waitUntil(site, "stored_under_way", 1);
                double before = site.stat("store_seconds");
                Thread.sleep(500);
                assertArrayEquals(Site.file(LONG, 1), body(socket, LONG));
                waitUntil(site, "stored_under_way", 0);
                assertTrue(site.stat("store_seconds") - before < 0.5, "the reader's pause is not among it");
            }
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"1", "4"})
    void aStoreThatStopsEndsTheConnectionOfItsReader(String threads) throws Exception {
        try (Site site = new Site("--threads", threads)) {
            site.store.mood = FakeStore.Mood.STOPS;
            try (Socket socket = ask(site, IDLER)) {
                assertTrue(socket.getInputStream().readAllBytes().length < 200_000, "what there was, and then the end");
            }
            waitUntil(site, "stored_under_way", 0);
            assertEquals(1.0, site.stat("errors"));
            assertEquals(0.0, site.stat("stored_files"));
        }
    }
}
