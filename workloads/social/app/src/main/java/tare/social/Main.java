package tare.social;

import java.io.IOException;
import java.net.BindException;
import java.nio.file.FileSystemException;
import java.util.Arrays;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.logging.Level;
import java.util.logging.Logger;
import org.apache.catalina.LifecycleException;
import tare.social.data.Unavailable;

/** The command line. Exit codes: 1 cannot serve, 2 bad arguments, reported in a line before anything listens. */
public final class Main {
    private static final String HELP = """
            tare-social: a social web application on an embedded servlet container.

            java -cp 'LIB/*' tare.social.Main --listen ADDRESS --database ADDRESS:PORT/NAME --user USER
                --files ADDRESS:PORT [options]
                writes "ready" to standard output when it serves, and serves until it is ended

              --listen ADDRESS                where it listens
              --port P                        plain HTTP (8080; 0 is any)
              --instance K                    number of this instance, from 1: its tree in the file store (1)
              --database ADDRESS:PORT/NAME    PostgreSQL with its tables
              --user USER                     as whom, without a password
              --files ADDRESS:PORT            file store and geocoder
              --pool N                        connections to the database, at most (50)
              --threads N                     that serve requests, at most (200)
              --home-ttl S                    seconds for which the anonymous home page is kept (10)
              --object-ttl S                  seconds for which objects are kept (1800)
            """;

    /** Loggers that nobody holds are forgotten, with their level. */
    private static final Set<Logger> QUIET = ConcurrentHashMap.newKeySet();

    private Main() {}

    /** Serves until it is killed. */
    public static void main(String[] words) {
        List<String> given = Arrays.asList(words);
        if (given.contains("--help") || given.contains("-h")) {
            System.out.print(HELP);
            return;
        }
        try {
            Server server = start(given);
            // Its temporary folder goes with it.
            Runtime.getRuntime().addShutdownHook(new Thread(server::close, "end"));
            System.out.print("ready\n");
            System.out.flush();
        } catch (Bad e) {
            end(e.getMessage(), 2);
        } catch (LifecycleException | Unavailable e) {
            end(e.getMessage(), 1);
        } catch (IOException e) {
            end("cannot write static files to the temporary folder " + System.getProperty("java.io.tmpdir") + ": "
                    + why(e) + "; choose another with -Djava.io.tmpdir", 1);
        }
    }

    private static void end(String why, int code) {
        System.err.println("tare-social: " + why.replace('\n', ' '));
        System.exit(code);
    }

    /** Checks everything, then listens. */
    static Server start(List<String> words) throws Bad, LifecycleException, Unavailable, IOException {
        Options options = Options.parse(words);
        quiet();
        try {
            return new Server(options, Timeouts.USUAL);
        } catch (LifecycleException e) {
            Throwable root = root(e);
            throw new LifecycleException(root instanceof BindException
                    ? "cannot listen on " + options.listen().getHostAddress() + ":" + options.port() + ": " + why(root)
                            + "; choose another with --listen and --port"
                    : "cannot start: " + why(root), e);
        }
    }

    /** Turns off the logs of the container and of the database's driver: this program reports their failures itself. */
    static void quiet() {
        for (String name : List.of("org.apache", "org.postgresql")) {
            Logger logger = Logger.getLogger(name);
            logger.setLevel(Level.OFF);
            QUIET.add(logger);
        }
    }

    private static Throwable root(Throwable failure) {
        Throwable root = failure;
        while (root.getCause() != null && !(root instanceof BindException)) {
            root = root.getCause();
        }
        return root;
    }

    /** What the system says; of a file its kind says more than its message, which is the file's name. */
    private static String why(Throwable failure) {
        return failure.getMessage() == null || failure instanceof FileSystemException ? failure.toString()
                : failure.getMessage();
    }
}
