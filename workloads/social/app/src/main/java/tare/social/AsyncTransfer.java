package tare.social;

import jakarta.servlet.AsyncContext;
import jakarta.servlet.AsyncEvent;
import jakarta.servlet.AsyncListener;
import jakarta.servlet.ServletOutputStream;
import jakarta.servlet.WriteListener;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.concurrent.Semaphore;
import java.util.concurrent.atomic.AtomicBoolean;
import tare.common.client.BackendFailure;
import tare.social.files.IncomingFile;

/**
 * A long file on its way to its reader. While the reader takes nothing it holds no thread: the container calls again when there
 * is room for more, and ends what makes no way for as long as a reply waits for its reader.
 */
final class AsyncTransfer implements WriteListener, AsyncListener {
    private final IncomingFile file;
    private final AsyncContext request;
    private final ServletOutputStream to;
    private final Counts counts;
    private final Semaphore room;
    private final AtomicBoolean ended = new AtomicBoolean();
    private boolean flushed;

    private AsyncTransfer(IncomingFile file, AsyncContext request, ServletOutputStream to, Counts counts, Semaphore room) {
        this.file = file;
        this.request = request;
        this.to = to;
        this.counts = counts;
        this.room = room;
    }

    /**
     * Begins; whatever becomes of it, it closes the file and gives the room back.
     *
     * @param room of which it has taken one
     */
    static void begin(IncomingFile file, HttpServletRequest request, HttpServletResponse response, Counts counts,
            Semaphore room) throws IOException {
        AsyncTransfer passing = null;
        try {
            ServletOutputStream to = response.getOutputStream();
            AsyncContext here = request.startAsync();
            // Whoever goes on taking may take as long as they want.
            here.setTimeout(0);
            passing = new AsyncTransfer(file, here, to, counts, room);
            here.addListener(passing);
            to.setWriteListener(passing);
        } finally {
            if (passing == null) {
                file.close();
                room.release();
            }
        }
    }

    @Override
    public void onWritePossible() throws IOException {
        while (to.isReady()) {
            if (!file.isOver()) {
                to.write(some());
            } else if (!flushed) {
                // The end of the request would wait for what the container still has.
                flushed = true;
                to.flush();
            } else {
                end();
                request.complete();
                return;
            }
        }
    }

    private ByteBuffer some() throws IOException {
        try {
            ByteBuffer some = file.some();
            if (file.isOver()) {
                // Before it is sent: who has read it may ask for the counts at once.
                counts.passed(file.length());
            }
            return some;
        } catch (BackendFailure e) {
            counts.errors.increment();
            // It has promised more than there is: the container ends the connection.
            throw new IOException(e);
        }
    }

    private void end() {
        if (ended.compareAndSet(false, true)) {
            file.close();
            room.release();
        }
    }

    @Override
    public void onError(Throwable why) {
        // The reader is gone, or has taken nothing for too long, or the store failed.
        end();
    }

    @Override
    public void onComplete(AsyncEvent event) {
        end();
    }

    @Override
    public void onTimeout(AsyncEvent event) {
        // There is no limit.
    }

    @Override
    public void onError(AsyncEvent event) {
        end();
    }

    @Override
    public void onStartAsync(AsyncEvent event) {
        // It begins once.
    }
}
