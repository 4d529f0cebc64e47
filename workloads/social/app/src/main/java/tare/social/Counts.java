package tare.social;

import java.util.concurrent.atomic.LongAdder;
import tare.common.Json;

/** What was served since the start. */
final class Counts {
    /** Pages, fragments and redirections that were made. */
    final LongAdder pages = new LongAdder();
    /** Static files that were sent or had not changed. */
    final LongAdder files = new LongAdder();
    /** Static files that had not changed. */
    final LongAdder notModified = new LongAdder();
    /** Files of the store that were passed on. */
    final LongAdder stored = new LongAdder();
    /** Their bytes. */
    final LongAdder storedBytes = new LongAdder();
    /** Requests that were refused: what they ask for is not there, not allowed, or not understood. */
    final LongAdder refused = new LongAdder();
    /** Requests that failed: the database or the file store did not do its part. */
    final LongAdder errors = new LongAdder();
    /** Anonymous home pages that were there already. */
    final LongAdder homeHits = new LongAdder();

    /** A file of the store was passed on. */
    void passed(long bytes) {
        stored.increment();
        storedBytes.add(bytes);
    }

    /** Writes all, and requests for pages and files, however they were answered. */
    void report(Json out) {
        out.put("requests", pages.sum() + files.sum() + stored.sum() + refused.sum() + errors.sum())
                .put("pages", pages.sum()).put("files", files.sum()).put("not_modified", notModified.sum())
                .put("stored_files", stored.sum()).put("stored_bytes", storedBytes.sum()).put("refused", refused.sum())
                .put("errors", errors.sum()).put("home_hits", homeHits.sum());
    }
}
