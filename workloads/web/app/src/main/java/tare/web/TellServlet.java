package tare.web;

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
import tare.web.backend.Backend;

/** Tells, on the plain port, that the server serves, and what it did. */
final class TellServlet extends HttpServlet {
    private static final long serialVersionUID = 1;

    private final transient Counts counts;
    private final transient Backend backend;
    private final transient Manager sessions;

    TellServlet(Counts counts, Backend backend, Manager sessions) {
        this.counts = counts;
        this.backend = backend;
        this.sessions = sessions;
    }

    @Override
    protected void doGet(HttpServletRequest request, HttpServletResponse response) throws IOException {
        String what = request.isSecure() ? "" : request.getServletPath();
        switch (what) {
            case "/tare/ready" -> tell(response, HttpServletResponse.SC_OK, "text/plain", "ready");
            case "/tare/stats" -> tell(response, HttpServletResponse.SC_OK, "application/json", stats());
            default -> tell(response, HttpServletResponse.SC_NOT_FOUND, "text/plain", "on the plain port alone\n");
        }
    }

    private static void tell(HttpServletResponse response, int status, String type, String text) throws IOException {
        byte[] body = Text.of(text);
        response.setStatus(status);
        response.setContentType(type);
        response.setContentLength(body.length);
        response.getOutputStream().write(body);
    }

    private String stats() {
        MemoryUsage heap = ManagementFactory.getMemoryMXBean().getHeapMemoryUsage();
        long collections = 0;
        long collectionMs = 0;
        for (GarbageCollectorMXBean collector : ManagementFactory.getGarbageCollectorMXBeans()) {
            collections += Math.max(collector.getCollectionCount(), 0);
            collectionMs += Math.max(collector.getCollectionTime(), 0);
        }
        OperatingSystemMXBean system = (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
        StringBuilder out = new StringBuilder(600);
        put(out, "requests", counts.requests());
        put(out, "pages", counts.pages.sum());
        put(out, "files", counts.files.sum());
        put(out, "not_modified", counts.notModified.sum());
        put(out, "errors", counts.errors.sum());
        put(out, "sessions", sessions.getActiveSessions());
        put(out, "sessions_most", sessions.getMaxActive());
        put(out, "tls_connections", counts.tlsConnections.sum());
        put(out, "backend_calls", backend.calls());
        put(out, "backend_errors", backend.errors());
        put(out, "backend_seconds", backend.seconds());
        put(out, "backend_p99_seconds", backend.p99Seconds());
        put(out, "heap_used_bytes", heap.getUsed());
        put(out, "heap_committed_bytes", heap.getCommitted());
        put(out, "collections", collections);
        put(out, "collection_seconds", collectionMs / 1e3);
        put(out, "cpu_seconds", system.getProcessCpuTime() / 1e9);
        return out.append("}\n").toString();
    }

    private static void put(StringBuilder out, String name, long value) {
        out.append(out.length() == 0 ? '{' : ',').append('"').append(name).append("\":").append(value);
    }

    private static void put(StringBuilder out, String name, double value) {
        out.append(',').append('"').append(name).append("\":").append(String.format(Locale.ROOT, "%.9f", value));
    }
}
