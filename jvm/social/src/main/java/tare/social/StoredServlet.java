package tare.social;

import jakarta.servlet.http.HttpServlet;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.ByteBuffer;
import java.util.regex.Pattern;
import org.apache.catalina.connector.CoyoteOutputStream;
import tare.social.files.Store;
import tare.social.files.Unserved;

/** Pictures and documents: passed on from the store, a part at a time. */
final class StoredServlet extends HttpServlet {
    private static final long serialVersionUID = 1;

    private static final Pattern IMAGE = Pattern.compile("/(person|event)/[1-9][0-9]{0,9}t?\\.jpg");
    private static final Pattern DOCUMENT = Pattern.compile("/event/[1-9][0-9]{0,9}\\.pdf");

    private final transient Store store;
    private final transient Counts counts;

    StoredServlet(Store store, Counts counts) {
        this.store = store;
        this.counts = counts;
    }

    /** The response, once it is known how long it will be. */
    private record Taker(HttpServletResponse response, String type) implements Store.Taker {
        @Override
        public OutputStream begin(long length) throws IOException {
            response.setContentType(type);
            response.setContentLengthLong(length);
            return response.getOutputStream();
        }

        @Override
        public void take(OutputStream to, ByteBuffer some) throws IOException {
            // The container's own stream takes bytes that are not on the heap.
            ((CoyoteOutputStream) to).write(some);
        }
    }

    @Override
    protected void doGet(HttpServletRequest request, HttpServletResponse response) throws IOException {
        String path = request.getPathInfo() == null ? "" : request.getPathInfo();
        boolean image = request.getServletPath().equals("/image");
        if (!(image ? IMAGE : DOCUMENT).matcher(path).matches()) {
            refuse(response);
            return;
        }
        try {
            long bytes = store.get(path, new Taker(response, image ? "image/jpeg" : "application/pdf"));
            if (bytes < 0) {
                refuse(response);
                return;
            }
            counts.stored.increment();
            counts.storedBytes.add(bytes);
        } catch (Unserved e) {
            counts.errors.increment();
            if (response.isCommitted()) {
                // It has promised more than there is: the container ends the connection.
                throw new IOException(e);
            }
            response.reset();
            tell(response, HttpServletResponse.SC_BAD_GATEWAY, e.getMessage());
        }
    }

    private void refuse(HttpServletResponse response) throws IOException {
        counts.refused.increment();
        tell(response, HttpServletResponse.SC_NOT_FOUND, "there is no such file");
    }

    private static void tell(HttpServletResponse response, int status, String why) throws IOException {
        byte[] body = Text.of(why + "\n");
        response.setStatus(status);
        response.setContentType("text/plain;charset=utf-8");
        response.setContentLength(body.length);
        response.getOutputStream().write(body);
    }
}
