package tare.web;

import jakarta.servlet.Servlet;
import java.io.File;
import java.security.KeyStore;
import java.util.concurrent.TimeUnit;
import org.apache.catalina.Executor;
import org.apache.catalina.LifecycleException;
import org.apache.catalina.Wrapper;
import org.apache.catalina.connector.Connector;
import org.apache.catalina.core.StandardContext;
import org.apache.catalina.core.StandardHost;
import org.apache.catalina.core.StandardThreadExecutor;
import org.apache.catalina.session.StandardManager;
import org.apache.catalina.startup.Tomcat;
import org.apache.catalina.valves.ErrorReportValve;
import org.apache.catalina.webresources.StandardRoot;
import org.apache.coyote.AbstractProtocol;
import org.apache.tomcat.util.modeler.Registry;
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

    private final Tomcat tomcat = new Tomcat();
    private final Counts counts = new Counts();
    private final Backend backend;
    private final Connector plain;
    private final Connector secure;

    /** A context that needs no folder of its own: nothing is compiled or uploaded. */
    private static final class Sites extends StandardContext {
        @Override
        protected void postWorkDirectory() {
            // None.
        }
    }

    /**
     * Begins to serve.
     *
     * @param certificate null where no port has TLS
     */
    Server(Options options, Pages pages, KeyStore certificate) throws LifecycleException {
        // Nobody manages it from outside; registering costs memory a connection.
        Registry.disableRegistry();
        backend = new Backend(options.backend(), options.backendConnections(), BACKEND_TIMEOUT_MS);
        tomcat.setBaseDir(options.data().toString());
        tomcat.setSilent(true);
        StandardThreadExecutor workers = new StandardThreadExecutor();
        workers.setName("workers");
        workers.setNamePrefix("web-");
        workers.setMaxThreads(options.threads());
        workers.setMinSpareThreads(Math.min(options.threads(), 8));
        tomcat.getService().addExecutor(workers);
        plain = add(Ports.plain(options.listen(), options.port(), options.connections(), options.keepAliveS()),
                workers);
        secure = options.tls() == null ? null : add(Ports.tls(options, certificate, counts.tlsConnections), workers);
        host().addChild(sites(options, pages));
        try {
            tomcat.start();
        } catch (LifecycleException e) {
            close();
            throw e;
        }
    }

    private Connector add(Connector connector, Executor workers) {
        tomcat.getService().addConnector(connector);
        ((AbstractProtocol<?>) connector.getProtocolHandler()).setExecutor(workers);
        return connector;
    }

    private StandardHost host() {
        StandardHost host = (StandardHost) tomcat.getHost();
        host.setCreateDirs(false);
        host.setAutoDeploy(false);
        ErrorReportValve errors = new ErrorReportValve();
        errors.setShowReport(false);
        errors.setShowServerInfo(false);
        host.getPipeline().addValve(errors);
        return host;
    }

    private StandardContext sites(Options options, Pages pages) {
        StandardContext sites = new Sites();
        sites.setName("");
        sites.setPath("");
        sites.setParentClassLoader(Server.class.getClassLoader());
        sites.addLifecycleListener(new Tomcat.FixContextListener());
        sites.setSessionCookieName(PageServlet.COOKIE);
        StandardManager sessions = new StandardManager();
        // They do not outlive the server.
        sessions.setPathname(null);
        sites.setManager(sessions);
        sites.setResources(files(options, sites));
        sites.addMimeMapping("gif", "image/gif");
        sites.addMimeMapping("jpg", "image/jpeg");
        sites.addMimeMapping("bin", "application/octet-stream");
        servlet(sites, "pages", new PageServlet(pages, backend, counts, options.sessionTimeoutS()), "/");
        Wrapper tell = servlet(sites, "tell", new TellServlet(counts, backend, sessions), "/tare/ready");
        tell.addMapping("/tare/stats");
        Wrapper files = servlet(sites, "files", new FileServlet(counts), "/files/*");
        files.addInitParameter("listings", "false");
        files.addInitParameter("sendfileSize", Integer.toString(SEND_KIB));
        files.addInitParameter("input", Integer.toString(READ_BYTES));
        return sites;
    }

    private static Wrapper servlet(StandardContext sites, String name, Servlet servlet, String address) {
        Wrapper wrapper = Tomcat.addServlet(sites, name, servlet);
        wrapper.setLoadOnStartup(1);
        wrapper.addMapping(address);
        return wrapper;
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
        root.setCacheStrategy(new Kept(folder, SEND_KIB * 1024, cacheKib / 2 * 1024));
        return root;
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
        try {
            tomcat.stop();
            tomcat.destroy();
        } catch (LifecycleException e) {
            // It ends all the same.
        }
        backend.close();
    }
}
