package tare.social.files;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;

/** What a store may say that it should not, and how it should. */
class StoreTest {
    /** Answers each request with the same, and goes on with the connection. */
    private static final class Sayer implements AutoCloseable {
        private final ServerSocket server = new ServerSocket(0, 50, InetAddress.getLoopbackAddress());
        private final byte[] answer;
        private final AtomicInteger connections = new AtomicInteger();

        Sayer(String answer) throws IOException {
            this.answer = answer.getBytes(StandardCharsets.ISO_8859_1);
            Thread thread = new Thread(this::accept, "sayer");
            thread.setDaemon(true);
            thread.start();
        }

        private void accept() {
            byte[] request = new byte[8 * 1024];
            while (true) {
                try (Socket socket = server.accept()) {
                    connections.incrementAndGet();
                    // A request is short, and comes as a whole.
                    while (socket.getInputStream().read(request) > 0) {
                        socket.getOutputStream().write(answer);
                    }
                } catch (IOException e) {
                    if (server.isClosed()) {
                        return;
                    }
                }
            }
        }

        Store store() {
            return new Store(new InetSocketAddress(InetAddress.getLoopbackAddress(), server.getLocalPort()), 1, 20_000);
        }

        @Override
        public void close() throws IOException {
            server.close();
        }
    }

    private static String read(Store store) throws Unserved {
        StringBuilder all = new StringBuilder();
        try (Incoming file = store.get("/person/1.jpg")) {
            while (!file.isOver()) {
                all.append(StandardCharsets.ISO_8859_1.decode(file.some()));
            }
        }
        return all.toString();
    }

    @Test
    void answersThatMakeNoSenseAreReported() throws Exception {
        String[][] cases = {
            {"HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\nx", "is not HTTP/1.1"},
            {"HTTP/1.1 20 OK\r\nContent-Length: 1\r\n\r\nx", "is not HTTP/1.1"},
            {"HTTP/1.1 2x0 OK\r\nContent-Length: 1\r\n\r\nx", "is not HTTP/1.1"},
            {"HTTP/1.1 099 OK\r\nContent-Length: 1\r\n\r\nx", "is not HTTP/1.1"},
            {"HTTP/1.1 600 OK\r\nContent-Length: 1\r\n\r\nx", "is not HTTP/1.1"},
            {"\r\n\r\n", "is not HTTP/1.1"},
            {"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n", "status 503"},
            {"HTTP/1.1 200 OK\r\nServer: it\r\n\r\nx", "has no length"},
            {"HTTP/1.1 200 OK\r\nContent-Length: \r\n\r\nx", "has no length"},
            {"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\nx", "has no length"},
            {"HTTP/1.1 200 OK\r\nContent-Length: 1e3\r\n\r\nx", "has no length"},
            {"HTTP/1.1 200 OK\r\nContent-Length: 1234567890123\r\n\r\nx", "has no length"},
            {"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nxy", "longer than it says"},
            {"HTTP/1.1 200 OK\r\n" + "a: b\r\n".repeat(2_000), "too long"},
        };
        for (String[] one : cases) {
            try (Sayer sayer = new Sayer(one[0]); Store store = sayer.store()) {
                String why = assertThrows(Unserved.class, () -> read(store), one[0]).getMessage();
                assertTrue(why.startsWith("cannot get /1/person/1.jpg from the file store 127.0.0.1:")
                        && why.contains(one[1]), why);
                assertEquals(1, store.errors());
            }
        }
    }

    @Test
    void aConnectionIsKeptUnlessItIsSaidToEnd() throws Exception {
        String[] heads = {"content-LENGTH:5\r\n", "A: b\r\nContent-Length: 5\r\nConnection: keep-alive\r\n"};
        for (String head : heads) {
            try (Sayer sayer = new Sayer("HTTP/1.1 200 OK\r\n" + head + "\r\nhello"); Store store = sayer.store()) {
                assertEquals("hello", read(store));
                assertEquals("hello", read(store));
                assertEquals(1, sayer.connections.get());
                assertEquals(0, store.errors());
            }
        }
        try (Sayer sayer = new Sayer("HTTP/1.1 200\r\nconnection: Close\r\nContent-Length: 5\r\n\r\nhello");
                Store store = sayer.store()) {
            assertEquals("hello", read(store));
            assertEquals("hello", read(store));
            assertEquals(2, sayer.connections.get());
        }
    }

    @Test
    void aFileThatIsNotTakenAsAWholeEndsItsConnection() throws Exception {
        try (Sayer sayer = new Sayer("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"); Store store = sayer.store()) {
            try (Incoming file = store.get("/person/1.jpg")) {
                assertEquals(5, file.length());
            }
            assertEquals("hello", read(store));
            assertEquals(2, sayer.connections.get());
            Incoming file = store.get("/person/1.jpg");
            file.some();
            file.close();
            file.close();
            assertTrue(file.isOver(), "what others read there is not its own");
            assertEquals("hello", read(store));
            assertEquals(2, sayer.connections.get());
        }
    }
}
