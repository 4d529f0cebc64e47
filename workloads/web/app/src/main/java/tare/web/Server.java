package tare.web;

import java.io.File;
import java.security.KeyStore;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.apache.catalina.LifecycleException;
import org.apache.catalina.Manager;
import org.apache.catalina.Wrapper;
import org.apache.catalina.connector.Connector;
import org.apache.catalina.core.StandardContext;
import org.apache.catalina.webresources.StandardRoot;
import tare.common.Json;
import tare.common.server.EmbeddedTomcat;
import tare.common.server.FileServlet;
import tare.common.server.StatusServlet;
import tare.web.backend.Backend;

/** The container with the sites in it. */
final class Server implements AutoCloseable {
    /** Files do not change while the server runs, but it looks again now and then. */
    private static final long FRESH_MS = TimeUnit.MINUTES.toMillis(1);
    /** Files over this are sent by the kernel where there is no TLS; shorter ones cost less when copied. KiB. */
    private static final int SEND_KIB = 48;
    /** What is read of a file at a time, bytes: most that are not cached are shorter. */
    private static final int READ_BYTES = 16 * 1024;
    private static final int BACKEND_TIMEOUT_MS = 10_000;

    private final EmbeddedTomcat tomcat;
    private final Counts counts = new Counts();
    private final Backend backend;
    private final Connector plain;
    private final Connector secure;

    /**
     * Begins to serve.
     *
     * @param certificate null where no port has TLS
     */
    Server(Options options, Pages pages, KeyStore certificate) throws LifecycleException {
        backend = new Backend(options.backend(), options.backendConnections(), BACKEND_TIMEOUT_MS);
        tomcat = new EmbeddedTomcat(options.data(), options.threads());
        plain = tomcat.add(Connectors.plain(options.listen(), options.port(), options.connections(), options.keepAliveS()));
        secure = options.tls() == null ? null : tomcat.add(Connectors.tls(options, certificate, counts.tlsConnections));
        add(options, pages);
        try {
            tomcat.start();
        } catch (LifecycleException e) {
            close();
            throw e;
        }
    }

    private void add(Options options, Pages pages) {
        StandardContext sites = tomcat.application(PageServlet.COOKIE,
                Map.of("gif", "image/gif", "jpg", "image/jpeg", "bin", "application/octet-stream"));
        sites.setResources(files(options, sites));
        EmbeddedTomcat.servlet(sites, "pages", new PageServlet(pages, backend, counts, options.sessionTimeoutS()), "/");
        StatusServlet.add(sites, out -> report(sites.getManager(), out));
        Wrapper files = EmbeddedTomcat.servlet(sites, "files",
                new FileServlet(counts.files, counts.notModified, counts.errors), "/files/*");
        files.addInitParameter("listings", "false");
        files.addInitParameter("sendfileSize", Integer.toString(SEND_KIB));
        files.addInitParameter("input", Integer.toString(READ_BYTES));
    }

    private static StandardRoot files(Options options, StandardContext sites) {
        StandardRoot root = new StandardRoot(sites);
        File folder = options.data().resolve("files").toFile();
        root.addPreResources(new DataFiles(root, folder));
        // The folder is the server's own, and what a link in it points to is meant.
        root.setAllowLinking(true);
        root.setCacheTtl(FRESH_MS);
        // An eighth of the heap, half of it for images of pages, which fill a few megabytes.
        long cacheKib = Math.max(Runtime.getRuntime().maxMemory() / 8 / 1024, 4 * 1024);
        root.setCacheMaxSize(cacheKib);
        root.setCacheObjectMaxSize(SEND_KIB);
        root.setCacheStrategy(new FileCachePolicy(folder, SEND_KIB * 1024, cacheKib / 2 * 1024));
        return root;
    }

    private void report(Manager sessions, Json out) {
        counts.report(out);
        backend.report(out);
        out.put("sessions", sessions.getActiveSessions()).put("sessions_most", sessions.getMaxActive());
    }

    /** The plain port. */
    int port() {
        return plain.getLocalPort();
    }

    /** The port with TLS; -1 where there is none. */
    int tlsPort() {
        return secure == null ? -1 : secure.getLocalPort();
    }

    @Override
    public void close() {
        tomcat.close();
        backend.close();
    }
}
