package tare.testing;

import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;

/** A server on the loopback address that does with each connection what a test wants. */
public final class TestServer implements AutoCloseable {
    private final ServerSocket listening = new ServerSocket(0, 1_000, InetAddress.getLoopbackAddress());
    private final Set<Socket> open = ConcurrentHashMap.newKeySet();
    private final AtomicInteger connections = new AtomicInteger();
    private final Conversation conversation;

    /** What is done on a connection, which is then closed. */
    @FunctionalInterface
    public interface Conversation {
        /** Does it. */
        void on(Socket socket) throws IOException;
    }

    /** Listens on any port that is free. */
    public TestServer(Conversation conversation) throws IOException {
        this.conversation = conversation;
        daemon(this::accept);
    }

    /** Does something in a thread that keeps no program from ending. */
    public static void daemon(Runnable what) {
        Thread thread = new Thread(what, "test-server");
        thread.setDaemon(true);
        thread.start();
    }

    private void accept() {
        try {
            while (true) {
                Socket socket = listening.accept();
                connections.incrementAndGet();
                open.add(socket);
                daemon(() -> converse(socket));
            }
        } catch (IOException e) {
            // Closed.
        }
    }

    private void converse(Socket socket) {
        try (socket) {
            conversation.on(socket);
        } catch (IOException e) {
            // One side has ended it.
        } finally {
            open.remove(socket);
        }
    }

    /** Where it listens. */
    public InetSocketAddress address() {
        return (InetSocketAddress) listening.getLocalSocketAddress();
    }

    /** Its port. */
    public int port() {
        return listening.getLocalPort();
    }

    /** How many connections there have been. */
    public int connections() {
        return connections.get();
    }

    /** Ends all connections. */
    public void hangUp() {
        open.forEach(socket -> {
            try {
                socket.close();
            } catch (IOException e) {
                // It has ended.
            }
        });
    }

    @Override
    public void close() throws IOException {
        listening.close();
        hangUp();
    }
}
