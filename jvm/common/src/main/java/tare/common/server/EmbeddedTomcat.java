package tare.common.server;

import jakarta.servlet.Servlet;
import java.net.BindException;
import java.net.InetAddress;
import java.nio.file.Path;
import java.util.Map;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.apache.catalina.LifecycleException;
import org.apache.catalina.Wrapper;
import org.apache.catalina.connector.Connector;
import org.apache.catalina.core.StandardContext;
import org.apache.catalina.core.StandardHost;
import org.apache.catalina.core.StandardThreadExecutor;
import org.apache.catalina.session.StandardManager;
import org.apache.catalina.startup.Tomcat;
import org.apache.catalina.valves.ErrorReportValve;
import org.apache.coyote.http11.Http11NioProtocol;
import org.apache.tomcat.util.modeler.Registry;
import tare.common.Causes;

/** A servlet container with one application, for thousands of users who think more than they ask, on one processor or two. */
public final class EmbeddedTomcat implements AutoCloseable {
    /** A connection waits for its first request, and a reply for its reader, this long at most. */
    private static final int TIMEOUT_MS = 60_000;
    /** New users come in bursts; the kernel cuts it down to net.core.somaxconn. */
    private static final int BACKLOG = 4_096;
    /** Most pages fit into what the kernel keeps (up to net.core.wmem_max), so that slow readers hold no thread. */
    private static final int KERNEL_BYTES = 256 * 1024;
    private static final int SPARE_THREADS = 8;

    private final Tomcat tomcat = new Tomcat();
    private final StandardThreadExecutor workers = new StandardThreadExecutor();

    /** A context that needs no folder of its own. */
    private static final class Application extends StandardContext {
        @Override
        protected void postWorkDirectory() {
            // None.
        }
    }

    /**
     * A container without ports or application.
     *
     * @param base its folder, into which it writes nothing
     * @param threads that serve requests, at most
     */
    public EmbeddedTomcat(Path base, int threads) {
        // Nobody manages it from outside; registering costs memory a connection.
        Registry.disableRegistry();
        tomcat.setBaseDir(base.toString());
        tomcat.setSilent(true);
        workers.setName("workers");
        workers.setNamePrefix("worker-");
        workers.setMaxThreads(threads);
        workers.setMinSpareThreads(Math.min(threads, SPARE_THREADS));
        tomcat.getService().addExecutor(workers);
    }

    /**
     * What listens on a port.
     *
     * @param port 0 takes any that is free
     * @param connections of users, at most
     * @param keepAliveS seconds that a connection may be idle between requests
     */
    public static Connector connector(Http11NioProtocol protocol, InetAddress listen, int port, int connections,
            int keepAliveS) {
        Connector connector = new Connector(protocol);
        // A port that is taken ends the start, which would go on without it.
        connector.setThrowOnFailure(true);
        connector.setPort(port);
        protocol.setAddress(listen);
        protocol.setMaxConnections(connections);
        protocol.setAcceptCount(BACKLOG);
        protocol.setMaxKeepAliveRequests(-1);
        protocol.setKeepAliveTimeout((int) Math.min(keepAliveS * 1_000L, Integer.MAX_VALUE));
        protocol.setConnectionTimeout(TIMEOUT_MS);
        protocol.setUseKeepAliveResponseHeader(false);
        connector.setProperty("socket.txBufSize", Integer.toString(KERNEL_BYTES));
        return connector;
    }

    /** Adds it, served by the container's threads. */
    public Connector add(Connector connector) {
        tomcat.getService().addConnector(connector);
        ((Http11NioProtocol) connector.getProtocolHandler()).setExecutor(workers);
        return connector;
    }

    /**
     * Adds the application, which has all addresses and no servlet yet.
     *
     * @param cookie name of that of sessions
     * @param types of files by the end of their names
     */
    public StandardContext application(String cookie, Map<String, String> types) {
        StandardContext context = new Application();
        context.setName("");
        context.setPath("");
        context.setParentClassLoader(EmbeddedTomcat.class.getClassLoader());
        // The process ends with it: nothing that it leaves behind need be looked for.
        context.setClearReferencesRmiTargets(false);
        context.setClearReferencesThreadLocals(false);
        context.addLifecycleListener(new Tomcat.FixContextListener());
        context.setSessionCookieName(cookie);
        StandardManager sessions = new StandardManager();
        // They do not outlive the process.
        sessions.setPathname(null);
        context.setManager(sessions);
        types.forEach(context::addMimeMapping);
        StandardHost host = (StandardHost) tomcat.getHost();
        host.setCreateDirs(false);
        host.setAutoDeploy(false);
        ErrorReportValve errors = new ErrorReportValve();
        errors.setShowReport(false);
        errors.setShowServerInfo(false);
        host.getPipeline().addValve(errors);
        host.addChild(context);
        return context;
    }

    /** Adds a servlet to an application. */
    public static Wrapper servlet(StandardContext context, String name, Servlet servlet, String address) {
        Wrapper wrapper = Tomcat.addServlet(context, name, servlet);
        wrapper.setLoadOnStartup(1);
        wrapper.addMapping(address);
        return wrapper;
    }

    /**
     * Begins to serve.
     *
     * @throws LifecycleException with a message for the user
     */
    public void start() throws LifecycleException {
        try {
            tomcat.start();
        } catch (LifecycleException e) {
            Throwable failure = e;
            while (failure.getCause() != null && !(failure instanceof BindException)) {
                failure = failure.getCause();
            }
            throw new LifecycleException(failure instanceof BindException
                    ? "cannot listen on " + ports() + ": " + Causes.message(failure) + "; choose another with --listen and --port"
                    : "cannot start: " + Causes.message(failure), e);
        }
    }

    private String ports() {
        return Stream.of(tomcat.getService().findConnectors())
                .map(connector -> ((Http11NioProtocol) connector.getProtocolHandler()).getAddress().getHostAddress() + ":"
                        + connector.getPort())
                .collect(Collectors.joining(" and "));
    }

    @Override
    public void close() {
        try {
            tomcat.stop();
            tomcat.destroy();
        } catch (LifecycleException e) {
            // It ends all the same.
        }
    }
}
