package tare.common.server;

import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;

/** Answers that are sent as a whole. */
public final class Responses {
    private Responses() {}

    /** Sends the first bytes of some, as that type. */
    public static void send(HttpServletResponse response, String type, byte[] bytes, int length) throws IOException {
        response.setContentType(type);
        response.setContentLength(length);
        response.getOutputStream().write(bytes, 0, length);
    }

    /** Sends all bytes, with that status. */
    public static void send(HttpServletResponse response, int status, String type, byte[] bytes) throws IOException {
        response.setStatus(status);
        send(response, type, bytes, bytes.length);
    }
}
