package tare.social;

import jakarta.servlet.MultipartConfigElement;
import jakarta.servlet.Servlet;
import java.io.IOException;
import java.net.InetAddress;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.apache.catalina.LifecycleException;
import org.apache.catalina.Wrapper;
import org.apache.catalina.connector.Connector;
import org.apache.catalina.core.StandardContext;
import org.apache.catalina.core.StandardHost;
import org.apache.catalina.core.StandardThreadExecutor;
import org.apache.catalina.session.StandardManager;
import org.apache.catalina.startup.Tomcat;
import org.apache.catalina.valves.ErrorReportValve;
import org.apache.catalina.webresources.DirResourceSet;
import org.apache.catalina.webresources.StandardRoot;
import org.apache.coyote.http11.Http11NioProtocol;
import org.apache.tomcat.util.modeler.Registry;
import tare.social.data.Database;
import tare.social.data.Objects;
import tare.social.data.Social;
import tare.social.data.Unavailable;
import tare.social.files.Folder;
import tare.social.files.StaticFiles;
import tare.social.files.Store;

/** The container with the application in it. */
final class Server implements AutoCloseable {
    /** Static files do not change while the application runs, milliseconds. */
    private static final long FRESH_MS = 3_600_000;
    /** A connection waits for its first request, and a reply for its reader, this long at most. */
    private static final int TIMEOUT_MS = 60_000;
    /** A user thinks for 25 s at most. */
    private static final int KEEP_ALIVE_MS = 300_000;
    /** Of users at one time, at most; further ones wait to be accepted. */
    private static final int CONNECTIONS = 20_000;
    /** What is read at a time, bytes: a request. */
    private static final int READ_BYTES = 8 * 1024;
    /** Users come at once; the kernel cuts it down to net.core.somaxconn. */
    private static final int WAITING = 4_096;
    /** Most of a page fits into what the kernel keeps (up to net.core.wmem_max), so that slow readers hold no thread. */
    private static final int KERNEL_BYTES = 256 * 1024;
    /** What is written at a time: a page, or a good part of a picture. */
    private static final int WRITE_BYTES = 32 * 1024;
    /** Of a form without its files. */
    private static final int FORM_BYTES = 64 * 1024;
    private static final int FIELDS = 50;
    /** The store takes no longer one. */
    private static final long FILE_BYTES = 1_343_040;
    private static final long UPLOAD_BYTES = 5L << 20;
    /** The answer to a form that is beyond these. */
    static final String TOO_LONG = "the form is too long: it may have " + FIELDS + " fields and files, " + FORM_BYTES
            + " bytes without files, " + FILE_BYTES + " in a file, and " + UPLOAD_BYTES + " in all";
    /** A longer file of a form goes to the disk on its way. */
    private static final int HEAP_BYTES = 16 * 1024;
    /** Long files that wait for their readers without a thread; each keeps a connection to the store, and a part of itself. */
    private static final int READERS = 1_000;
    private static final int READER_BYTES = 160 * 1024;
    private static final int SESSIONS = 100_000;
    /** Of a session, about. */
    private static final int SESSION_BYTES = 1_024;

    private final Tomcat tomcat = new Tomcat();
    private final Counts counts = new Counts();
    private final Folder folder;
    private final Store store;
    private final Database database;
    private final Connector connector;
    private boolean closed;

    /** A context that needs no folder of its own but that for uploads. */
    private static final class Application extends StandardContext {
        @Override
        protected void postWorkDirectory() {
            // None.
        }
    }

    /** Begins to serve. */
    Server(Options options, Timeouts timeouts) throws LifecycleException, Unavailable, IOException {
        // Nobody manages it from outside; registering costs memory a connection.
        Registry.disableRegistry();
        database = new Database(options.database(), options.pool(), timeouts.poolMs(), timeouts.statementS());
        store = new Store(options.files(), options.instance(), timeouts.storeMs());
        folder = new Folder(Path.of(System.getProperty("java.io.tmpdir")));
        connector = connector(options.listen(), options.port());
        try {
            Files.createDirectory(folder.path().resolve("uploads"));
            StaticFiles.write(Files.createDirectory(folder.path().resolve("static")));
            StandardThreadExecutor workers = new StandardThreadExecutor();
            workers.setName("workers");
            workers.setNamePrefix("social-");
            workers.setMaxThreads(options.threads());
            workers.setMinSpareThreads(Math.min(options.threads(), 8));
            tomcat.setBaseDir(folder.path().toString());
            tomcat.setSilent(true);
            tomcat.getService().addExecutor(workers);
            ((Http11NioProtocol) connector.getProtocolHandler()).setExecutor(workers);
            tomcat.getService().addConnector(connector);
            host().addChild(application(options));
            tomcat.start();
        } catch (LifecycleException | IOException | RuntimeException e) {
            close();
            throw e;
        }
    }

    private static Connector connector(InetAddress listen, int port) {
        Http11NioProtocol protocol = new Http11NioProtocol();
        Connector connector = new Connector(protocol);
        // A port that is taken ends the start, which would go on without it.
        connector.setThrowOnFailure(true);
        connector.setPort(port);
        connector.setMaxPostSize(FORM_BYTES);
        connector.setMaxParameterCount(FIELDS);
        protocol.setAddress(listen);
        // Their buffers are in memory off the heap, of which the machine takes as much as of the heap at most.
        protocol.setMaxConnections(fitting(CONNECTIONS, 2, READ_BYTES + WRITE_BYTES));
        protocol.setAcceptCount(WAITING);
        protocol.setMaxKeepAliveRequests(-1);
        protocol.setKeepAliveTimeout(KEEP_ALIVE_MS);
        protocol.setConnectionTimeout(TIMEOUT_MS);
        protocol.setUseKeepAliveResponseHeader(false);
        // Who is refused has sent what it has sent: it is read, so that the answer is.
        protocol.setMaxSwallowSize((int) UPLOAD_BYTES);
        connector.setProperty("socket.txBufSize", Integer.toString(KERNEL_BYTES));
        connector.setProperty("socket.appReadBufSize", Integer.toString(READ_BYTES));
        connector.setProperty("socket.appWriteBufSize", Integer.toString(WRITE_BYTES));
        // Off the heap: what is written from there is not copied once more.
        connector.setProperty("socket.directBuffer", "true");
        return connector;
    }

    /** As many as there may be at most, or as fit into a part of the heap's size. */
    private static int fitting(int most, int part, int bytes) {
        return (int) Math.min(most, Runtime.getRuntime().maxMemory() / part / bytes);
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

    private StandardContext application(Options options) {
        StandardContext context = new Application();
        context.setName("");
        context.setPath("");
        context.setParentClassLoader(Server.class.getClassLoader());
        // The process ends with it: nothing that it leaves behind need be looked for.
        context.setClearReferencesRmiTargets(false);
        context.setClearReferencesThreadLocals(false);
        context.addLifecycleListener(new Tomcat.FixContextListener());
        // Forms in parts do not say what their letters are.
        context.setRequestCharacterEncoding("UTF-8");
        context.setSessionCookieName(PageServlet.COOKIE);
        StandardManager sessions = new StandardManager();
        // They do not outlive the application.
        sessions.setPathname(null);
        sessions.setMaxActiveSessions(fitting(SESSIONS, 8, SESSION_BYTES));
        context.setManager(sessions);
        StandardRoot root = new StandardRoot(context);
        root.addPreResources(new DirResourceSet(root, StaticFiles.MOUNT, folder.path().resolve("static").toString(), "/"));
        root.setCacheTtl(FRESH_MS);
        context.setResources(root);
        for (List<String> type : List.of(List.of("js", "text/javascript"), List.of("css", "text/css"),
                List.of("gif", "image/gif"))) {
            context.addMimeMapping(type.get(0), type.get(1));
        }
        // An eighth of the heap.
        Objects objects = new Objects(options.objectTtlS(), Runtime.getRuntime().maxMemory() / 8);
        Wrapper pages = servlet(context, "pages",
                new PageServlet(Social.of(database, objects), store, counts, options.homeTtlS()), "/");
        pages.setMultipartConfigElement(new MultipartConfigElement(folder.path().resolve("uploads").toString(), FILE_BYTES,
                UPLOAD_BYTES, HEAP_BYTES));
        // Half of the threads are for everything else.
        StoredServlet files = new StoredServlet(store, counts, options.threads() / 2, fitting(READERS, 8, READER_BYTES));
        Wrapper stored = servlet(context, "stored", files, "/image/*");
        stored.setAsyncSupported(true);
        stored.addMapping("/document/*");
        servlet(context, "tell", new TellServlet(counts, database, objects, store, files, sessions), "/tare/ready")
                .addMapping("/tare/stats");
        servlet(context, "static", new StaticServlet(counts), StaticFiles.MOUNT + "/*")
                .addInitParameter("listings", "false");
        return context;
    }

    private static Wrapper servlet(StandardContext context, String name, Servlet servlet, String address) {
        Wrapper wrapper = Tomcat.addServlet(context, name, servlet);
        wrapper.setLoadOnStartup(1);
        wrapper.addMapping(address);
        return wrapper;
    }

    /** The port. */
    int port() {
        return connector.getLocalPort();
    }

    /** Where its own files are. */
    Path folder() {
        return folder.path();
    }

    @Override
    public synchronized void close() {
        if (closed) {
            // The container would make its folder again, to be stopped in it.
            return;
        }
        closed = true;
        try {
            tomcat.stop();
            tomcat.destroy();
        } catch (LifecycleException e) {
            // It ends all the same.
        }
        store.close();
        database.close();
        folder.close();
    }
}
