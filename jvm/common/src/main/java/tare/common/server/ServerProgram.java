package tare.common.server;

import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.logging.Level;
import java.util.logging.Logger;
import tare.common.Causes;
import tare.common.InvalidInput;

/** The program of a server: it prints `ready` once it serves, and serves until it is killed. */
public final class ServerProgram {
    /** Loggers that nobody holds are forgotten, with their level. */
    private static final Set<Logger> SILENCED = ConcurrentHashMap.newKeySet();

    private ServerProgram() {}

    /** Starts the server. */
    @FunctionalInterface
    public interface Start {
        /** Checks everything, then listens. */
        void start(List<String> words) throws Exception;
    }

    /**
     * Runs it. Exit codes: 1 cannot serve, 2 invalid input, each reported in a line before anything listens.
     *
     * @param name of the program
     */
    public static void run(String name, String help, String[] words, Start start) {
        List<String> given = List.of(words);
        if (given.contains("--help") || given.contains("-h")) {
            System.out.print(help);
            return;
        }
        try {
            start.start(given);
            System.out.print("ready\n");
            System.out.flush();
        } catch (Exception e) {
            System.err.println(name + ": " + Causes.message(e).replace('\n', ' '));
            System.exit(e instanceof InvalidInput ? 2 : 1);
        }
    }

    /** Turns off the logs of libraries: the program reports their failures itself. */
    public static void silence(String... libraries) {
        for (String library : libraries) {
            Logger logger = Logger.getLogger(library);
            logger.setLevel(Level.OFF);
            SILENCED.add(logger);
        }
    }
}
