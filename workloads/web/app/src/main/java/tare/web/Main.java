package tare.web;

import java.nio.file.Files;
import java.nio.file.Path;
import java.security.KeyStore;
import java.util.List;
import org.apache.catalina.LifecycleException;
import tare.common.InvalidInput;
import tare.common.server.ServerProgram;

/** The command line. */
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
        ServerProgram.run("tare-web", HELP, words, Main::start);
    }

    /** Checks everything, then listens. */
    static Server start(List<String> words) throws InvalidInput, LifecycleException {
        Options options = Options.parse(words);
        Path files = options.data().resolve("files");
        if (!Files.isDirectory(files) || !Files.isReadable(files) || !Files.isExecutable(files)) {
            throw new InvalidInput("there is no folder " + files + " that can be read");
        }
        Pages pages = Pages.read(options.data().resolve("pages.tsv"));
        KeyStore certificate =
                options.tls() == null ? null : Certificate.read(options.tls().certificate(), options.tls().key());
        ServerProgram.silence("org.apache");
        return new Server(options, pages, certificate);
    }
}
