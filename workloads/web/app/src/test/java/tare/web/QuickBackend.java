package tare.web;

import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.nio.charset.StandardCharsets;

/** Answers everything alike, and at once: what bench/web-server.sh measures is then the server. Word: PORT. */
final class QuickBackend {
    private static final String PAGE = "<html><head><title>backend</title></head><body><pre>\n"
            + "0\n0123456789abcdef&0000012345&1204.17&2026-01-01&checking&savings&77.10&some text of a usual length&2\n"
            + "</pre></body></html>\n";
    private static final byte[] REPLY = ("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: "
            + PAGE.length() + "\r\n\r\n" + PAGE)
            .getBytes(StandardCharsets.US_ASCII);

    private QuickBackend() {}

    public static void main(String[] words) throws IOException {
        try (ServerSocketChannel listening = ServerSocketChannel.open()) {
            listening.bind(new InetSocketAddress(InetAddress.getLoopbackAddress(), Integer.parseInt(words[0])), 1_000);
            System.out.print("ready\n");
            System.out.flush();
            while (true) {
                SocketChannel channel = listening.accept();
                new Thread(() -> serve(channel)).start();
            }
        }
    }

    private static void serve(SocketChannel channel) {
        ByteBuffer in = ByteBuffer.allocateDirect(4_096);
        ByteBuffer out = ByteBuffer.allocateDirect(REPLY.length).put(REPLY);
        try (channel) {
            while (channel.read(in) >= 0) {
                int at = in.position();
                // One query at a time: it has come when its end has.
                if (at >= 4 && in.get(at - 1) == '\n' && in.get(at - 3) == '\n') {
                    in.clear();
                    out.rewind();
                    while (out.hasRemaining()) {
                        channel.write(out);
                    }
                }
            }
        } catch (IOException e) {
            // The server is gone.
        }
    }
}
