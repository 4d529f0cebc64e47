package tare.web;

import jakarta.servlet.ServletException;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import org.apache.catalina.servlets.DefaultServlet;

/** Files by the container's own way, counted. A folder is no file. */
final class FileServlet extends DefaultServlet {
    private static final long serialVersionUID = 1;

    private final transient Counts counts;

    FileServlet(Counts counts) {
        this.counts = counts;
    }

    @Override
    protected void doGet(HttpServletRequest request, HttpServletResponse response)
            throws IOException, ServletException {
        super.doGet(request, response);
        switch (response.getStatus()) {
            case HttpServletResponse.SC_OK, HttpServletResponse.SC_PARTIAL_CONTENT -> counts.files.increment();
            case HttpServletResponse.SC_NOT_MODIFIED -> {
                counts.files.increment();
                counts.notModified.increment();
            }
            default -> counts.errors.increment();
        }
    }
}
