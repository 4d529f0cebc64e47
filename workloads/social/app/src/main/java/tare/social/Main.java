package tare.social;

import java.io.IOException;
import java.nio.file.FileSystemException;
import java.util.List;
import org.apache.catalina.LifecycleException;
import tare.common.Causes;
import tare.common.InvalidInput;
import tare.common.server.ServerProgram;
import tare.social.data.Unavailable;

/** The command line. */
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

    private Main() {}

    /** Serves until it is killed. */
    public static void main(String[] words) {
        ServerProgram.run("tare-social", HELP, words, given -> {
            Server server = start(given);
            // Its temporary folder goes with it.
            Runtime.getRuntime().addShutdownHook(new Thread(server::close, "end"));
        });
    }

    /** Checks everything, then listens. */
    static Server start(List<String> words) throws InvalidInput, LifecycleException, Unavailable, IOException {
        Options options = Options.parse(words);
        quiet();
        try {
            return new Server(options, Timeouts.USUAL);
        } catch (IOException e) {
            // Of a file its kind says more than its message, which is the file's name.
            throw new IOException("cannot write static files to the temporary folder "
                    + System.getProperty("java.io.tmpdir") + ": "
                    + (e instanceof FileSystemException ? e.toString() : Causes.message(e))
                    + "; choose another with -Djava.io.tmpdir", e);
        }
    }

    /** Turns off the logs of the container and of the database's driver. */
    static void quiet() {
        ServerProgram.silence("org.apache", "org.postgresql");
    }
}
