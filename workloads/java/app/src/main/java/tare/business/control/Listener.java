package tare.business.control;

import java.io.BufferedInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.ServerSocket;
import java.net.Socket;
import java.net.SocketException;
import java.nio.charset.StandardCharsets;
import tare.business.client.Crew;

/** Takes one connection after the other, and answers its lines until one says that the application ends. */
public final class Listener {
    /** A longer line is no request. */
    private static final int LONGEST_LINE = 1_024;

    private final ServerSocket socket;
    private final Crew crew;
    private final Protocol protocol;

    /** Answers on a socket that listens. */
    public Listener(ServerSocket socket, Crew crew) {
        this.socket = socket;
        this.crew = crew;
        protocol = new Protocol(crew);
    }

    /** Serves until a driver says `quit`. */
    public void serve() throws IOException, InterruptedException {
        boolean ends = false;
        while (!ends) {
            try (Socket connection = accept()) {
                ends = converse(connection);
            } catch (IOException e) {
                if (socket.isClosed()) {
                    throw e;
                }
                System.err.println("tare-java: the connection broke: " + e.getMessage());
            } finally {
                // Nobody is there any more who would stop the load.
                crew.stop();
            }
        }
    }

    private Socket accept() throws IOException {
        Socket connection = socket.accept();
        connection.setTcpNoDelay(true);
        // A driver's machine that vanished must not hold the only connection for ever.
        connection.setKeepAlive(true);
        return connection;
    }

    /** True when the application is to end. */
    private boolean converse(Socket connection) throws IOException, InterruptedException {
        InputStream in = new BufferedInputStream(connection.getInputStream());
        OutputStream out = connection.getOutputStream();
        for (String line = line(in); line != null; line = line(in)) {
            String answer = protocol.answer(line);
            out.write((answer + "\n").getBytes(StandardCharsets.US_ASCII));
            out.flush();
            if (answer.equals(Protocol.BYE)) {
                return true;
            }
        }
        return false;
    }

    /** The next line; `null` at the end. */
    private static String line(InputStream in) throws IOException {
        StringBuilder line = new StringBuilder();
        for (int next = in.read(); next != '\n'; next = in.read()) {
            if (next < 0) {
                return null;
            }
            if (line.length() == LONGEST_LINE) {
                throw new SocketException("a line is longer than " + LONGEST_LINE + " bytes");
            }
            line.append((char) next);
        }
        return line.toString();
    }
}
