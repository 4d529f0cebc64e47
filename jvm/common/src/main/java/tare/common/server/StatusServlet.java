package tare.common.server;

import jakarta.servlet.http.HttpServlet;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.util.function.Consumer;
import org.apache.catalina.Wrapper;
import org.apache.catalina.core.StandardContext;
import tare.common.Json;
import tare.common.Jvm;
import tare.common.Text;

/** The server's status, on ports without TLS alone: that it serves (/tare/ready), and its figures since the start (/tare/stats). */
public final class StatusServlet extends HttpServlet {
    private static final String READY = "/tare/ready";
    private static final String STATS = "/tare/stats";

    private final Consumer<Json> figures;

    private StatusServlet(Consumer<Json> figures) {
        this.figures = figures;
    }

    /**
     * Adds it to an application.
     *
     * @param figures writes those of the application; those of the virtual machine follow
     */
    public static void add(StandardContext context, Consumer<Json> figures) {
        Wrapper status = EmbeddedTomcat.servlet(context, "status", new StatusServlet(figures), READY);
        status.addMapping(STATS);
    }

    @Override
    protected void doGet(HttpServletRequest request, HttpServletResponse response) throws IOException {
        switch (request.isSecure() ? "" : request.getServletPath()) {
            case READY -> send(response, HttpServletResponse.SC_OK, "text/plain", "ready");
            case STATS -> send(response, HttpServletResponse.SC_OK, "application/json", stats());
            default -> send(response, HttpServletResponse.SC_NOT_FOUND, "text/plain", "on the plain port alone\n");
        }
    }

    private static void send(HttpServletResponse response, int status, String type, String text) throws IOException {
        Responses.send(response, status, type, Text.of(text));
    }

    private String stats() {
        Json out = new Json(9);
        figures.accept(out);
        return out.put("heap_used_bytes", Jvm.heap().getUsed())
                .put("heap_committed_bytes", Jvm.heap().getCommitted())
                .put("collections", Jvm.collections())
                .put("collection_seconds", Jvm.collectionMillis() / 1e3)
                .put("cpu_seconds", Jvm.cpuNanos() / 1e9)
                .end() + "\n";
    }
}
