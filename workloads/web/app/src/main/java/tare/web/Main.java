package tare.web;

import java.net.BindException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.KeyStore;
import java.util.Arrays;
import java.util.List;
import java.util.logging.Level;
import java.util.logging.Logger;
import org.apache.catalina.LifecycleException;

/** The command line. Exit codes: 1 cannot listen, 2 bad arguments or data, reported in a line before anything listens. */
public final class Main {
    private static final String HELP = """
            tare-web: web sites on an embedded servlet container.

            java -cp 'DATA/lib/*' tare.web.Main --data DATA --listen ADDRESS --backend ADDRESS:PORT [options]
                writes "ready" to standard output when it serves, and serves until it is ended

              --data DATA                folder with pages.tsv and files/
              --listen ADDRESS           where it listens
              --port P                   plain HTTP (8080; 0 is any)
              --tls-port P               HTTPS as well
              --certificate FILE         chain of the certificate, PEM
              --key FILE                 its private key, PEM
              --tls-sessions N           sessions of TLS that are kept (37917)
              --tls-session-seconds S    and for how long (900)
              --backend ADDRESS:PORT     who is asked for every page
              --backend-connections N    connections to it, at most (64, or as many as threads)
              --session-timeout S        seconds without a request after which a user's session ends (1200)
              --threads N                that serve requests, at most (200)
              --connections N            of users on a port, at most (20000)
              --keep-alive S             seconds that a connection may be idle (300)
            """;

    private Main() {}

    /** Serves until it is killed. */
    public static void main(String[] words) {
        List<String> given = Arrays.asList(words);
        if (given.contains("--help") || given.contains("-h")) {
            System.out.print(HELP);
            return;
        }
        try {
            start(given);
            System.out.print("ready\n");
            System.out.flush();
        } catch (Bad e) {
            end(e.getMessage(), 2);
        } catch (LifecycleException e) {
            end(why(e), 1);
        }
    }

    private static void end(String why, int code) {
        System.err.println("tare-web: " + why.replace('\n', ' '));
        System.exit(code);
    }

    /** Checks everything, then listens. */
    static Server start(List<String> words) throws Bad, LifecycleException {
        Options options = Options.parse(words);
        Path files = options.data().resolve("files");
        if (!Files.isDirectory(files) || !Files.isReadable(files) || !Files.isExecutable(files)) {
            throw new Bad("there is no folder " + files + " that can be read");
        }
        Pages pages = Pages.read(options.data().resolve("pages.tsv"));
        KeyStore certificate =
                options.tls() == null ? null : Certificate.read(options.tls().certificate(), options.tls().key());
        quiet();
        return new Server(options, pages, certificate);
    }

    /** Turns off the container's log: this program reports its failures itself. */
    private static void quiet() {
        Logger container = Logger.getLogger("org.apache");
        container.setLevel(Level.OFF);
        QUIET.add(container);
    }

    /** Loggers that nobody holds are forgotten, with their level. */
    private static final java.util.Set<Logger> QUIET = java.util.concurrent.ConcurrentHashMap.newKeySet();

    private static String why(Throwable failure) {
        Throwable root = failure;
        while (root.getCause() != null && !(root instanceof BindException)) {
            root = root.getCause();
        }
        return (root instanceof BindException ? "cannot listen: " : "cannot start: ")
                + (root.getMessage() == null ? root.toString() : root.getMessage());
    }
}
