package tare.social;

import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;

/** A file store and geocoder, which can be made to do badly. */
final class FakeStore implements AutoCloseable {
    /** How it does. */
    enum Mood {
        WELL,
        /** It answers with 500. */
        FAILS,
        /** It answers nothing. */
        SILENT,
        /** It promises more than it sends. */
        STOPS,
        /** The geocoder knows nothing. */
        LOST
    }

    private static final String PLACE = "<?xml version=\"1.0\"?><ResultSet><Result><Latitude>33.0000</Latitude>"
            + "<Longitude>-177.0000</Longitude></Result></ResultSet>";

    final Map<String, byte[]> kept = new ConcurrentHashMap<>();
    /** The clients' ports: one for each connection. */
    final Set<Integer> connections = ConcurrentHashMap.newKeySet();
    volatile Mood mood = Mood.WELL;
    volatile String located = "";

    private final HttpServer server;
    private final ExecutorService workers = Executors.newCachedThreadPool();

    FakeStore() throws IOException {
        this(0);
    }

    FakeStore(int port) throws IOException {
        server = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), port), 0);
        server.setExecutor(workers);
        server.createContext("/", this::answer);
        server.start();
    }

    int port() {
        return server.getAddress().getPort();
    }

    private void answer(HttpExchange exchange) throws IOException {
        connections.add(exchange.getRemoteAddress().getPort());
        byte[] body = exchange.getRequestBody().readAllBytes();
        String path = exchange.getRequestURI().toString();
        switch (mood) {
            case FAILS -> send(exchange, 500, new byte[0]);
            case SILENT -> {
                // Left as it is; closing the server ends it.
            }
            case STOPS -> {
                exchange.sendResponseHeaders(200, 1_000_000);
                exchange.getResponseBody().write(new byte[100_000]);
                exchange.getResponseBody().flush();
                exchange.close();
            }
            default -> {
                if (path.startsWith("/geocode?")) {
                    located = path;
                    send(exchange, 200, (mood == Mood.LOST ? "<none/>" : PLACE).getBytes(StandardCharsets.UTF_8));
                } else if (exchange.getRequestMethod().equals("PUT")) {
                    kept.put(path, body);
                    send(exchange, 201, new byte[0]);
                } else {
                    byte[] file = kept.get(path);
                    send(exchange, file == null ? 404 : 200, file == null ? new byte[0] : file);
                }
            }
        }
    }

    /** The JDK's server does not tell the length of nothing. */
    private static void send(HttpExchange exchange, int status, byte[] body) throws IOException {
        exchange.sendResponseHeaders(status, body.length == 0 ? -1 : body.length);
        if (body.length > 0) {
            exchange.getResponseBody().write(body);
        }
        exchange.close();
    }

    @Override
    public void close() {
        server.stop(0);
        workers.shutdownNow();
    }
}
