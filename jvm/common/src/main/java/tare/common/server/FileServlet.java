package tare.common.server;

import jakarta.servlet.ServletException;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.util.concurrent.atomic.LongAdder;
import org.apache.catalina.servlets.DefaultServlet;

/** Files by the container's own servlet, counted. A folder is no file. */
public final class FileServlet extends DefaultServlet {
    private final LongAdder served;
    private final LongAdder notModified;
    private final LongAdder others;

    /**
     * Counts its answers.
     *
     * @param served files that were sent or had not changed
     * @param notModified those that had not changed
     * @param others answers without a file
     */
    public FileServlet(LongAdder served, LongAdder notModified, LongAdder others) {
        this.served = served;
        this.notModified = notModified;
        this.others = others;
    }

    @Override
    protected void doGet(HttpServletRequest request, HttpServletResponse response)
            throws IOException, ServletException {
        super.doGet(request, response);
        switch (response.getStatus()) {
            case HttpServletResponse.SC_OK, HttpServletResponse.SC_PARTIAL_CONTENT -> served.increment();
            case HttpServletResponse.SC_NOT_MODIFIED -> {
                served.increment();
                notModified.increment();
            }
            default -> others.increment();
        }
    }
}
