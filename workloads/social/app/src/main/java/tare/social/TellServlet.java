package tare.social;

import com.sun.management.OperatingSystemMXBean;
import jakarta.servlet.http.HttpServlet;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.lang.management.GarbageCollectorMXBean;
import java.lang.management.ManagementFactory;
import java.lang.management.MemoryUsage;
import java.util.Locale;
import org.apache.catalina.Manager;
import tare.social.data.Database;
import tare.social.data.Objects;
import tare.social.files.Store;

/** Tells that the application serves, and what it did. */
final class TellServlet extends HttpServlet {
    private static final long serialVersionUID = 1;

    private final transient Counts counts;
    private final transient Database database;
    private final transient Objects objects;
    private final transient Store store;
    private final transient StoredServlet files;
    private final transient Manager sessions;

    TellServlet(Counts counts, Database database, Objects objects, Store store, StoredServlet files,
            Manager sessions) {
        this.counts = counts;
        this.database = database;
        this.objects = objects;
        this.store = store;
        this.files = files;
        this.sessions = sessions;
    }

    @Override
    protected void doGet(HttpServletRequest request, HttpServletResponse response) throws IOException {
        boolean ready = request.getServletPath().equals("/tare/ready");
        byte[] body = Text.of(ready ? "ready" : stats());
        response.setContentType(ready ? "text/plain" : "application/json");
        response.setContentLength(body.length);
        response.getOutputStream().write(body);
    }

    private String stats() {
        StringBuilder out = new StringBuilder(1_000);
        put(out, "requests", counts.requests());
        put(out, "pages", counts.pages.sum());
        put(out, "files", counts.files.sum());
        put(out, "not_modified", counts.notModified.sum());
        put(out, "stored_files", counts.stored.sum());
        put(out, "stored_bytes", counts.storedBytes.sum());
        put(out, "stored_under_way", files.underWay());
        put(out, "refused", counts.refused.sum());
        put(out, "errors", counts.errors.sum());
        put(out, "sessions", sessions.getActiveSessions());
        put(out, "sessions_most", sessions.getMaxActive());
        put(out, "database_calls", database.calls());
        put(out, "database_errors", database.errors());
        put(out, "database_seconds", database.seconds());
        put(out, "pool_connections", database.connections());
        put(out, "pool_waits", database.waits());
        put(out, "pool_wait_seconds", database.waitSeconds());
        put(out, "store_calls", store.calls());
        put(out, "store_errors", store.errors());
        put(out, "store_seconds", store.seconds());
        put(out, "cache_hits", objects.hits());
        put(out, "cache_misses", objects.misses());
        put(out, "cache_bytes", objects.bytes());
        put(out, "home_hits", counts.homeHits.sum());
        machine(out);
        return out.append("}\n").toString();
    }

    private static void machine(StringBuilder out) {
        MemoryUsage heap = ManagementFactory.getMemoryMXBean().getHeapMemoryUsage();
        long collections = 0;
        long collectionMs = 0;
        for (GarbageCollectorMXBean collector : ManagementFactory.getGarbageCollectorMXBeans()) {
            collections += Math.max(collector.getCollectionCount(), 0);
            collectionMs += Math.max(collector.getCollectionTime(), 0);
        }
        OperatingSystemMXBean system = (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
        put(out, "heap_used_bytes", heap.getUsed());
        put(out, "heap_committed_bytes", heap.getCommitted());
        put(out, "collections", collections);
        put(out, "collection_seconds", collectionMs / 1e3);
        put(out, "cpu_seconds", system.getProcessCpuTime() / 1e9);
    }

    private static void put(StringBuilder out, String name, long value) {
        out.append(out.length() == 0 ? '{' : ',').append('"').append(name).append("\":").append(value);
    }

    private static void put(StringBuilder out, String name, double value) {
        out.append(',').append('"').append(name).append("\":").append(String.format(Locale.ROOT, "%.9f", value));
    }
}
