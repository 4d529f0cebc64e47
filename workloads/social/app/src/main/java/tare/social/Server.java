package tare.social;

import jakarta.servlet.MultipartConfigElement;
import java.io.IOException;
import java.net.InetAddress;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import org.apache.catalina.LifecycleException;
import org.apache.catalina.Manager;
import org.apache.catalina.Wrapper;
import org.apache.catalina.connector.Connector;
import org.apache.catalina.core.StandardContext;
import org.apache.catalina.session.ManagerBase;
import org.apache.catalina.webresources.DirResourceSet;
import org.apache.catalina.webresources.StandardRoot;
import org.apache.coyote.http11.Http11NioProtocol;
import tare.common.Json;
import tare.common.server.EmbeddedTomcat;
import tare.common.server.FileServlet;
import tare.common.server.StatusServlet;
import tare.social.data.Database;
import tare.social.data.Objects;
import tare.social.data.Social;
import tare.social.data.Unavailable;
import tare.social.files.StaticFiles;
import tare.social.files.Store;
import tare.social.files.TemporaryFolder;

/** The container with the application in it. */
final class Server implements AutoCloseable {
    /** Static files do not change while the application runs, milliseconds. */
    private static final long FRESH_MS = 3_600_000;
    /** A user thinks for 25 s at most, by a clock that may run a twelfth of the time: where drivers take turns. */
    private static final int KEEP_ALIVE_S = 900;
    /** Of users at one time, at most; further ones wait to be accepted. */
    private static final int CONNECTIONS = 20_000;
    /** What is read at a time, bytes: a request. */
    private static final int READ_BYTES = 8 * 1024;
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

    private final EmbeddedTomcat tomcat;
    private final Counts counts = new Counts();
    private final TemporaryFolder folder;
    private final Store store;
    private final Database database;
    private final Connector connector;
    private boolean closed;

    /** Begins to serve. */
    Server(Options options, Timeouts timeouts) throws LifecycleException, Unavailable, IOException {
        database = new Database(options.database(), options.pool(), timeouts.poolMs(), timeouts.statementS());
        store = new Store(options.files(), options.instance(), timeouts.storeMs());
        folder = new TemporaryFolder(Path.of(System.getProperty("java.io.tmpdir")));
        tomcat = new EmbeddedTomcat(folder.path(), options.threads());
        connector = tomcat.add(connector(options.listen(), options.port()));
        try {
            Files.createDirectory(folder.path().resolve("uploads"));
            StaticFiles.write(Files.createDirectory(folder.path().resolve("static")));
            add(options);
            tomcat.start();
        } catch (LifecycleException | IOException | RuntimeException e) {
            close();
            throw e;
        }
    }

    private static Connector connector(InetAddress listen, int port) {
        Http11NioProtocol protocol = new Http11NioProtocol();
        // Their buffers are in memory off the heap, of which the machine takes as much as of the heap at most.
        int connections = fitting(CONNECTIONS, 2, READ_BYTES + WRITE_BYTES);
        Connector connector = EmbeddedTomcat.connector(protocol, listen, port, connections, KEEP_ALIVE_S);
        connector.setMaxPostSize(FORM_BYTES);
        connector.setMaxParameterCount(FIELDS);
        // Who is refused has sent what it has sent: it is read, so that the answer is.
        protocol.setMaxSwallowSize((int) UPLOAD_BYTES);
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

    private void add(Options options) {
        StandardContext context = tomcat.application(PageServlet.COOKIE,
                Map.of("js", "text/javascript", "css", "text/css", "gif", "image/gif"));
        // Forms in parts do not say what their letters are.
        context.setRequestCharacterEncoding("UTF-8");
        ((ManagerBase) context.getManager()).setMaxActiveSessions(fitting(SESSIONS, 8, SESSION_BYTES));
        StandardRoot root = new StandardRoot(context);
        root.addPreResources(new DirResourceSet(root, StaticFiles.MOUNT, folder.path().resolve("static").toString(), "/"));
        root.setCacheTtl(FRESH_MS);
        context.setResources(root);
        // An eighth of the heap.
        Objects objects = new Objects(options.objectTtlS(), Runtime.getRuntime().maxMemory() / 8);
        EmbeddedTomcat.servlet(context, "pages", new PageServlet(Social.of(database, objects), store, counts,
                options.homeTtlS()), "/").setMultipartConfigElement(new MultipartConfigElement(
                        folder.path().resolve("uploads").toString(), FILE_BYTES, UPLOAD_BYTES, HEAP_BYTES));
        // Half of the threads are for everything else.
        StoredServlet files = new StoredServlet(store, counts, options.threads() / 2, fitting(READERS, 8, READER_BYTES));
        Wrapper stored = EmbeddedTomcat.servlet(context, "stored", files, "/image/*");
        stored.setAsyncSupported(true);
        stored.addMapping("/document/*");
        StatusServlet.add(context, out -> report(files, context.getManager(), objects, out));
        EmbeddedTomcat.servlet(context, "static", new FileServlet(counts.files, counts.notModified, counts.refused),
                StaticFiles.MOUNT + "/*").addInitParameter("listings", "false");
    }

    private void report(StoredServlet files, Manager sessions, Objects objects, Json out) {
        counts.report(out);
        database.report(out);
        store.report(out);
        out.put("stored_under_way", files.underWay()).put("sessions", sessions.getActiveSessions())
                .put("sessions_most", sessions.getMaxActive()).put("cache_hits", objects.hits())
                .put("cache_misses", objects.misses()).put("cache_bytes", objects.bytes());
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
        tomcat.close();
        store.close();
        database.close();
        folder.close();
    }
}
