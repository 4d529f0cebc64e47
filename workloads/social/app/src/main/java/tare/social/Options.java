package tare.social;

import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.UnknownHostException;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
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
    static Options parse(List<String> words) throws Bad {
        Map<String, String> given = new HashMap<>();
        for (int i = 0; i < words.size(); i += 2) {
            String name = words.get(i);
            if (!NAMES.contains(name)) {
                throw new Bad("unknown argument '" + name + "'; try --help");
            }
            if (i + 1 == words.size()) {
                throw new Bad(name + " needs a value; try --help");
            }
            if (given.put(name, words.get(i + 1)) != null) {
                throw new Bad(name + " is given twice");
            }
        }
        return new Options(address("--listen", needed(given, "--listen")), whole(given, "--port", 8_080, 0, 65_535),
                whole(given, "--instance", 1, 1, 10_000), database(given),
                target("--files", needed(given, "--files")), whole(given, "--pool", 50, 1, 1_000),
                whole(given, "--threads", 200, 1, 10_000), whole(given, "--home-ttl", 10, 0, 86_400),
                whole(given, "--object-ttl", 1_800, 0, 86_400));
    }

    private static Place database(Map<String, String> given) throws Bad {
        String text = needed(given, "--database");
        String user = needed(given, "--user");
        int slash = text.indexOf('/');
        if (slash <= 0) {
            throw new Bad("--database takes ADDRESS:PORT/NAME such as 198.18.0.1:5432/social1, not '" + text + "'");
        }
        return new Place(target("--database", text.substring(0, slash)), name("--database",
                text.substring(slash + 1)), name("--user", user));
    }

    private static String name(String option, String text) throws Bad {
        if (!text.matches("[A-Za-z_][A-Za-z0-9_-]{0,62}")) {
            throw new Bad(option + " takes a name of letters, digits, '_' and '-', at most 63, not '" + text + "'");
        }
        return text;
    }

    private static String needed(Map<String, String> given, String name) throws Bad {
        String value = given.get(name);
        if (value == null || value.isEmpty()) {
            throw new Bad(name + " is missing; try --help");
        }
        return value;
    }

    private static int whole(Map<String, String> given, String name, int otherwise, int least, int most) throws Bad {
        String value = given.get(name);
        if (value == null) {
            return otherwise;
        }
        try {
            int number = Integer.parseInt(value);
            if (number >= least && number <= most) {
                return number;
            }
        } catch (NumberFormatException e) {
            // Reported below, like a number that is out of range.
        }
        throw new Bad(name + " takes a whole number from " + least + " to " + most + ", not '" + value + "'");
    }

    private static InetSocketAddress target(String name, String text) throws Bad {
        int colon = text.lastIndexOf(':');
        String port = text.substring(colon + 1);
        if (colon <= 0 || !port.matches("[1-9][0-9]{0,4}") || Integer.parseInt(port) > 65_535) {
            throw new Bad(name + " takes ADDRESS:PORT such as 198.18.0.1:8090 or [::1]:8090, not '" + text + "'");
        }
        return new InetSocketAddress(address(name, text.substring(0, colon)), Integer.parseInt(port));
    }

    private static InetAddress address(String name, String text) throws Bad {
        String bare = text.startsWith("[") && text.endsWith("]") ? text.substring(1, text.length() - 1) : text;
        // Numbers alone: a name would be looked up, and may mean another machine.
        if (bare.matches("[0-9]{1,3}(\\.[0-9]{1,3}){3}|[0-9a-fA-F:.]*:[0-9a-fA-F:.]*")) {
            try {
                return InetAddress.getByName(bare);
            } catch (UnknownHostException e) {
                // Reported below.
            }
        }
        throw new Bad(name + " takes a numeric address such as 198.18.0.2 or ::1, not '" + text + "'");
    }
}
