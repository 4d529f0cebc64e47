package tare.social.files;

import java.io.IOException;
import java.nio.ByteBuffer;
import tare.common.client.BackendFailure;

/**
 * A file of the store on its way: how long it is is known, and its bytes come a part at a time. Whoever has it closes it: the
 * connection that it comes on is then used for others, where all of it was taken.
 */
public final class IncomingFile implements AutoCloseable {
    private final Store store;
    private final StoreConnection link;
    private final String what;
    private final long length;
    /** A part that has come and was not taken; null where there is none. */
    private ByteBuffer come;
    private boolean closed;

    /** Waits for the first bytes: a store that fails by then has sent nothing that anybody has seen. */
    IncomingFile(Store store, StoreConnection link, String what) throws IOException {
        this.store = store;
        this.link = link;
        this.what = what;
        length = link.left();
        come = length == 0 ? null : link.some();
    }

    /** Of the whole file, bytes. */
    public long length() {
        return length;
    }

    /** Whether nothing of it is left to be taken. */
    public synchronized boolean isOver() {
        // What the connection says after it was given back is of others.
        return closed || come == null && link.left() == 0;
    }

    /**
     * Takes the next part, at least a byte; waits for it where it has not come.
     *
     * @return to be taken as a whole, and valid until the next call
     * @throws BackendFailure when the store does not send it
     */
    public ByteBuffer some() throws BackendFailure {
        ByteBuffer some = come;
        if (some != null) {
            come = null;
            return some;
        }
        long began = System.nanoTime();
        try {
            return link.some();
        } catch (IOException e) {
            throw store.failed(what, e);
        } finally {
            store.waited(began);
        }
    }

    /** The connection serves others, or ends where there is more on it. */
    @Override
    public synchronized void close() {
        if (!closed) {
            closed = true;
            if (come == null) {
                store.give(link);
            } else {
                store.drop(link);
            }
        }
    }
}
