package tare.web;

import java.util.concurrent.atomic.LongAdder;

/** What was served since the start. */
final class Counts {
    /** Pages that were made. */
    final LongAdder pages = new LongAdder();
    /** Files that were sent or had not changed. */
    final LongAdder files = new LongAdder();
    /** Files that had not changed. */
    final LongAdder notModified = new LongAdder();
    /** Requests for pages or files that were answered with neither. */
    final LongAdder errors = new LongAdder();
    /** Connections to the port with TLS. */
    final LongAdder tlsConnections = new LongAdder();

    /** Requests for pages and files, however they were answered. */
    long requests() {
        return pages.sum() + files.sum() + errors.sum();
    }
}
