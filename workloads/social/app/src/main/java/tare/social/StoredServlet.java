package tare.social;

import jakarta.servlet.ServletOutputStream;
import jakarta.servlet.http.HttpServlet;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.concurrent.Semaphore;
import java.util.regex.Pattern;
import tare.common.Text;
import tare.common.client.BackendFailure;
import tare.common.server.Responses;
import tare.social.files.IncomingFile;
import tare.social.files.Store;

/**
 * Pictures and documents: passed on from the store, a part at a time. Not all threads wait for readers: where many long files
 * are on their way at once, further ones hold no thread while nobody takes them.
 */
final class StoredServlet extends HttpServlet {
    private static final Pattern IMAGE = Pattern.compile("/(person|event)/[1-9][0-9]{0,9}t?\\.jpg");
    private static final Pattern DOCUMENT = Pattern.compile("/event/[1-9][0-9]{0,9}\\.pdf");

    /** What is not longer fits into what the kernel keeps: it waits for its reader at worst behind others of theirs, bytes. */
    private static final long SHORT = 64 * 1024;

    private final Store store;
    private final Counts counts;
    private final int most;
    /** For long files that hold a thread until their readers have taken them. */
    private final Semaphore threads;
    /** For those that hold none. */
    private final Semaphore room;

    /**
     * Has served nothing yet.
     *
     * @param threads that may wait for the readers of long files: that is the cheapest way as long as they read
     * @param room for further long files, which hold no thread while their readers take nothing; those beyond it hold one
     */
    StoredServlet(Store store, Counts counts, int threads, int room) {
        this.store = store;
        this.counts = counts;
        most = threads + room;
        this.threads = new Semaphore(threads);
        this.room = new Semaphore(room);
    }

    /** Long files that are on their way. */
    int underWay() {
        return most - threads.availablePermits() - room.availablePermits();
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
            IncomingFile file = store.get(path);
            if (file == null) {
                refuse(response);
                return;
            }
            response.setContentType(image ? "image/jpeg" : "application/pdf");
            response.setContentLengthLong(file.length());
            if (file.length() <= SHORT) {
                pass(file, response.getOutputStream());
            } else if (threads.tryAcquire()) {
                try {
                    pass(file, response.getOutputStream());
                } finally {
                    threads.release();
                }
            } else if (room.tryAcquire()) {
                AsyncTransfer.begin(file, request, response, counts, room);
            } else {
                pass(file, response.getOutputStream());
            }
        } catch (BackendFailure e) {
            counts.errors.increment();
            if (response.isCommitted()) {
                // It has promised more than there is: the container ends the connection.
                throw new IOException(e);
            }
            response.reset();
            send(response, HttpServletResponse.SC_BAD_GATEWAY, e.getMessage());
        }
    }

    private void pass(IncomingFile file, ServletOutputStream to) throws IOException, BackendFailure {
        try (file) {
            while (!file.isOver()) {
                ByteBuffer some = file.some();
                if (file.isOver()) {
                    // Before it is sent: who has read it may ask for the counts at once.
                    counts.passed(file.length());
                }
                to.write(some);
            }
        }
    }

    private void refuse(HttpServletResponse response) throws IOException {
        counts.refused.increment();
        send(response, HttpServletResponse.SC_NOT_FOUND, "there is no such file");
    }

    private static void send(HttpServletResponse response, int status, String why) throws IOException {
        Responses.send(response, status, "text/plain;charset=utf-8", Text.of(why + "\n"));
    }
}
