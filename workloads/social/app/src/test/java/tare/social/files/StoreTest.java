package tare.social.files;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import org.junit.jupiter.api.Test;
import tare.common.client.BackendFailure;
import tare.testing.TestServer;

/** What a store may say that it should not, and how it should. */
class StoreTest {
    /** Answers each request with the same, and goes on with the connection. */
    private static TestServer saying(String answer) throws IOException {
        return new TestServer(socket -> {
            byte[] request = new byte[8 * 1024];
            // A request is short, and comes as a whole.
            while (socket.getInputStream().read(request) > 0) {
                socket.getOutputStream().write(answer.getBytes(StandardCharsets.ISO_8859_1));
            }
        });
    }

    private static Store store(TestServer server) {
        return new Store(server.address(), 1, 20_000);
    }

    private static String read(Store store) throws BackendFailure {
        StringBuilder all = new StringBuilder();
        try (IncomingFile file = store.get("/person/1.jpg")) {
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
            try (TestServer server = saying(one[0]); Store store = store(server)) {
                String why = assertThrows(BackendFailure.class, () -> read(store), one[0]).getMessage();
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
            try (TestServer server = saying("HTTP/1.1 200 OK\r\n" + head + "\r\nhello"); Store store = store(server)) {
                assertEquals("hello", read(store));
                assertEquals("hello", read(store));
                assertEquals(1, server.connections());
                assertEquals(0, store.errors());
            }
        }
        try (TestServer server = saying("HTTP/1.1 200\r\nconnection: Close\r\nContent-Length: 5\r\n\r\nhello");
                Store store = store(server)) {
            assertEquals("hello", read(store));
            assertEquals("hello", read(store));
            assertEquals(2, server.connections());
        }
    }

    @Test
    void aFileThatIsNotTakenAsAWholeEndsItsConnection() throws Exception {
        try (TestServer server = saying("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"); Store store = store(server)) {
            try (IncomingFile file = store.get("/person/1.jpg")) {
                assertEquals(5, file.length());
            }
            assertEquals("hello", read(store));
            assertEquals(2, server.connections());
            IncomingFile file = store.get("/person/1.jpg");
            file.some();
            file.close();
            file.close();
            assertTrue(file.isOver(), "what others read there is not its own");
            assertEquals("hello", read(store));
            assertEquals(2, server.connections());
        }
    }
}
