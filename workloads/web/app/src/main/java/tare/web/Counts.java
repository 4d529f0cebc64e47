package tare.web;

import java.util.concurrent.atomic.LongAdder;
import tare.common.Json;

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

    /** Writes all, and requests for pages and files, however they were answered. */
    void report(Json out) {
        out.put("requests", pages.sum() + files.sum() + errors.sum()).put("pages", pages.sum()).put("files", files.sum())
                .put("not_modified", notModified.sum()).put("errors", errors.sum())
                .put("tls_connections", tlsConnections.sum());
    }
}
