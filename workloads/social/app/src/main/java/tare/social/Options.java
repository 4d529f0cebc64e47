package tare.social;

import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.util.List;
import java.util.Set;
import tare.common.Arguments;
import tare.common.InvalidInput;
import tare.social.data.Place;

/**
 * The command line.
 *
 * @param listen address of the port
 * @param port 0 takes any that is free
 * @param instance number of this instance, from 1: its files are the store's under that number
 * @param database where its database is, and as whom it is used
 * @param files the file store, and the geocoder in it
 * @param pool connections to the database, at most
 * @param threads that serve requests, at most
 * @param homeTtlS seconds for which the home page of those who are not logged in is kept
 * @param objectTtlS seconds for which objects are kept
 */
record Options(InetAddress listen, int port, int instance, Place database, InetSocketAddress files, int pool,
        int threads, int homeTtlS, int objectTtlS) {

    private static final Set<String> NAMES = Set.of("--listen", "--port", "--instance", "--database", "--user",
            "--files", "--pool", "--threads", "--home-ttl", "--object-ttl");

    /** Reads `--name value` pairs. */
    static Options parse(List<String> words) throws InvalidInput {
        Arguments given = new Arguments(words, NAMES, Set.of());
        return new Options(given.address("--listen"), given.port("--port", 8_080),
                given.whole("--instance", 1, 1, 10_000), database(given), given.socketAddress("--files", 1),
                given.whole("--pool", 50, 1, 1_000), given.whole("--threads", 200, 1, 10_000),
                given.whole("--home-ttl", 10, 0, 86_400), given.whole("--object-ttl", 1_800, 0, 86_400));
    }

    private static Place database(Arguments given) throws InvalidInput {
        String text = given.required("--database");
        String user = given.required("--user");
        int slash = text.indexOf('/');
        if (slash <= 0) {
            throw new InvalidInput("--database takes ADDRESS:PORT/NAME such as 198.18.0.1:5432/social1, not '" + text + "'");
        }
        return new Place(Arguments.socketAddress("--database", text.substring(0, slash), 1),
                name("--database", text.substring(slash + 1)), name("--user", user));
    }

    private static String name(String option, String text) throws InvalidInput {
        if (!text.matches("[A-Za-z_][A-Za-z0-9_-]{0,62}")) {
            throw new InvalidInput(option + " takes a name of letters, digits, '_' and '-', at most 63, not '" + text + "'");
        }
        return text;
    }
}
