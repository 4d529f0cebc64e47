package tare.business.control;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import tare.business.client.Crew;

@Timeout(120)
class ProtocolTest {
    private ServerSocket socket;
    private Thread server;
    private Driver driver;

    /** A driver's side of the connection. */
    private static final class Driver implements AutoCloseable {
        private final Socket socket;
        private final BufferedReader in;

        Driver(int port) throws IOException {
            socket = new Socket(InetAddress.getLoopbackAddress(), port);
            in = new BufferedReader(new InputStreamReader(socket.getInputStream(), StandardCharsets.US_ASCII));
        }

        String ask(String line) throws IOException {
            socket.getOutputStream().write((line + "\n").getBytes(StandardCharsets.US_ASCII));
            return in.readLine();
        }

        long number(String line, String word) throws IOException {
            String answer = ask(line);
            assertTrue(answer.matches(word + " [0-9]+"), answer);
            return Long.parseLong(answer.substring(word.length() + 1));
        }

        List<String> result() throws IOException {
            List<String> lines = new ArrayList<>();
            for (String line = ask("result"); !line.equals("."); line = in.readLine()) {
                lines.add(line);
            }
            return lines;
        }

        @Override
        public void close() throws IOException {
            socket.close();
        }
    }

    @BeforeEach
    void begin() throws IOException {
        socket = new ServerSocket(0, 1, InetAddress.getLoopbackAddress());
        Crew crew = new Crew(2, 1);
        server = new Thread(() -> {
            try {
                new Listener(socket, crew).serve();
            } catch (IOException | InterruptedException e) {
                // The test's end closes the socket.
            }
        });
        server.start();
        driver = new Driver(socket.getLocalPort());
    }

    @AfterEach
    void end() throws IOException, InterruptedException {
        driver.close();
        socket.close();
        server.join();
    }

    @Test
    void aWholeConversation() throws IOException, InterruptedException {
        String ready = driver.ask("hello 1");
        assertTrue(ready.matches("ready 1 groups=2 live_heap_bytes=[0-9]+ heap_max_bytes=[0-9]+ java=[0-9.]+ "
                + "collector=[A-Z][A-Za-z0-9]* pid=[0-9]+"), ready);
        assertEquals("ok", driver.ask("load rate=2500.5 seed=18446744073709551615"));
        assertEquals("ok", driver.ask("start"));
        long before = driver.number("begin", "count");
        while (driver.number("count", "count") < before + 500) {
            Thread.sleep(5);
        }
        long after = driver.number("end", "count");
        long stopped = driver.number("stop", "stopped");
        assertTrue(stopped >= after && after >= before + 500);
        List<String> result = driver.result();
        for (String name : List.of("response", "service", "lateness")) {
            assertEquals(after - before, counted(result, name), name);
        }
        assertEquals(stopped, kinds(result));
        assertValues(result);
        assertEquals("right", driver.ask("verify"));
        assertEquals("ok", driver.ask("load rate=0 seed=2"));
        assertEquals("ok", driver.ask("start"));
        assertTrue(driver.number("stop", "stopped") >= stopped);
        assertEquals("bye", driver.ask("quit"));
        server.join();
        assertNull(driver.in.readLine());
    }

    /** Operations of a histogram, whose bins must ascend. */
    private static long counted(List<String> result, String name) {
        long count = 0;
        long last = -1;
        for (String line : result) {
            String[] words = line.split(" ");
            if (words[0].equals("bin") && words[1].equals(name)) {
                assertTrue(Long.parseLong(words[2]) > last, line);
                last = Long.parseLong(words[3]);
                assertTrue(last >= Long.parseLong(words[2]), line);
                count += Long.parseLong(words[4]);
            }
        }
        return count;
    }

    private static long kinds(List<String> result) {
        long all = 0;
        List<String> names = new ArrayList<>();
        for (String line : result) {
            if (line.startsWith("transaction ")) {
                names.add(line.split(" ")[1]);
                all += Long.parseLong(line.split(" ")[2]);
            }
        }
        assertEquals(
                List.of("new-order", "payment", "customer-report", "order-status", "delivery", "stock-level"), names);
        return all;
    }

    private static void assertValues(List<String> result) {
        List<String> others = new ArrayList<>();
        for (String line : result) {
            if (line.startsWith("value ") || line.startsWith("stat ")) {
                assertTrue(line.matches("(value|stat) [a-z_]+( [0-9]+)+"), line);
                others.add(line.split(" ")[1]);
            }
        }
        assertEquals(List.of("response", "service", "lateness", "dropped", "heap_used_bytes", "heap_committed_bytes",
                "allocated_bytes", "collections", "collection_ms", "cpu_ns"), others);
    }

    @Test
    void whatIsNotUnderstoodOrComesTooEarlyIsAnError() throws IOException {
        for (String line : List.of("", "hello", "hello 2", "HELLO 1", "load", "load rate=1", "load rate=x seed=1",
                "load rate=-1 seed=1", "load rate=1e12 seed=1", "load rate=1 rate=1 seed=1", "load rate=1 seed=-1",
                "load rate=1 seed=1 more=1", "start", "begin", "end", "result", "stop now", "quit now", "\u0001")) {
            String answer = driver.ask(line);
            assertTrue(answer.startsWith("error ") && answer.length() > 20, line + " -> " + answer);
        }
        assertEquals("ok", driver.ask("load rate=10 seed=1"));
        assertEquals("ok", driver.ask("start"));
        for (String line : List.of("start", "load rate=1 seed=1", "verify", "result", "end")) {
            String answer = driver.ask(line);
            assertTrue(answer.startsWith("error "), line + " -> " + answer);
        }
        driver.number("stop", "stopped");
        assertEquals("right", driver.ask("verify"));
    }

    @Test
    void aBrokenConnectionEndsTheLoadAndTheNextOneIsTaken() throws IOException {
        assertEquals("ok", driver.ask("load rate=0 seed=1"));
        assertEquals("ok", driver.ask("start"));
        driver.close();
        driver = new Driver(socket.getLocalPort());
        long count = driver.number("count", "count");
        assertEquals(count, driver.number("count", "count"));
        assertEquals("right", driver.ask("verify"));
        assertEquals("ok", driver.ask("start"), "the load that was given still holds");
    }

    @Test
    void aLineWithoutAnEndCostsTheConnectionAndNotTheApplication() throws IOException {
        assertFalse(server.isInterrupted());
        try {
            assertNull(driver.ask("x".repeat(5_000)));
        } catch (IOException e) {
            // Reset: what was sent lay unread.
        }
        driver.close();
        driver = new Driver(socket.getLocalPort());
        assertTrue(driver.ask("hello 1").startsWith("ready 1 "));
    }
}
