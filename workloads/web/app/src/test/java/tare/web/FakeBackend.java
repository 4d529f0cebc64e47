package tare.web;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import tare.testing.TestServer;

/** A backend that does what a test wants. */
final class FakeBackend implements AutoCloseable {
    /** How it answers. */
    enum Manner { WELL, OTHER_PROOF, STATUS_ONE, NO_PROOF, GARBAGE, ERROR, NO_LENGTH, SAYS_CLOSE, SILENT, IN_PIECES,
            MARKUP, CUT, ECHO }

    private static final String OTHER = "ffffffffffffffff";

    volatile Manner manner = Manner.WELL;
    final List<String> queries = new CopyOnWriteArrayList<>();
    final TestServer server = new TestServer(this::serve);

    FakeBackend() throws IOException {}

    InetSocketAddress address() {
        return server.address();
    }

    /** What a page must show that asked this. */
    static String proof(String query) {
        return String.format("%016x", query.hashCode() * 0x9E3779B97F4A7C15L);
    }

    private void serve(Socket socket) throws IOException {
        BufferedReader in = new BufferedReader(new InputStreamReader(socket.getInputStream(),
                StandardCharsets.ISO_8859_1));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String query = line.replaceFirst("GET /\\?", "").replaceFirst(" HTTP/1.1$", "");
            while (!in.readLine().isEmpty()) {
                // Nothing of the head is of interest.
            }
            // Before the query is known to have come: a test may then change it for the next.
            Manner how = manner;
            queries.add(query);
            if (!answer(how, socket.getOutputStream(), query)) {
                return;
            }
        }
    }

    private boolean answer(Manner how, OutputStream out, String query) throws IOException {
        String fields = proof(query) + "&12.50&some text&" + query.length();
        switch (how) {
            case WELL -> send(out, reply("0\n" + fields));
            case ECHO -> send(out, reply("0\n" + query));
            case OTHER_PROOF -> send(out, reply("0\n" + OTHER + "&1"));
            case STATUS_ONE -> send(out, reply("1\n" + fields));
            case NO_PROOF -> send(out, reply("0\n&1&2"));
            case MARKUP -> send(out, reply("0\n" + fields + "&\"<script>\""));
            case GARBAGE -> send(out, "HTTP/1.1 200 OK\r\nContent-Length: 12\r\n\r\nsomething\n12");
            case ERROR -> send(out, "HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n");
            case NO_LENGTH -> send(out, "HTTP/1.1 200 OK\r\n\r\n" + reply("0\n" + fields));
            case SAYS_CLOSE -> {
                send(out, reply("0\n" + fields).replaceFirst("\r\n", "\r\nConnection: close\r\n"));
                return false;
            }
            case IN_PIECES -> {
                for (char one : reply("0\n" + fields).toCharArray()) {
                    send(out, String.valueOf(one));
                }
            }
            case CUT -> {
                send(out, reply("0\n" + fields).substring(0, 100));
                return false;
            }
            case SILENT -> {
                // The test ends the connection, or its timeout does.
            }
            default -> throw new IOException("unknown manner");
        }
        return true;
    }

    private static String reply(String inside) {
        String body = "<html><head><title>backend</title></head><body><pre>\n" + inside + "\n</pre></body></html>\n";
        return "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\ncontent-length: " + body.length() + "\r\n\r\n" + body;
    }

    private static void send(OutputStream out, String text) throws IOException {
        out.write(text.getBytes(StandardCharsets.ISO_8859_1));
        out.flush();
    }

    @Override
    public void close() throws IOException {
        server.close();
    }
}
