package tare.web;

import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.UnknownHostException;
import java.nio.file.InvalidPathException;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * The command line.
 *
 * @param data folder with `pages.tsv` and `files/`
 * @param listen address of both ports
 * @param port plain; 0 takes any that is free
 * @param tls what TLS is served with; null where there is none
 * @param backend who is asked for every page
 * @param backendConnections kept connections to it, at most
 * @param sessionTimeoutS seconds without a request after which a session ends
 * @param threads that serve requests, at most
 * @param connections of users on a port, at most
 * @param keepAliveS seconds that a connection may be idle between requests
 */
record Options(Path data, InetAddress listen, int port, Tls tls, InetSocketAddress backend, int backendConnections,
        int sessionTimeoutS, int threads, int connections, int keepAliveS) {

    /**
     * The port with TLS.
     *
     * @param port 0 takes any that is free
     * @param certificate file with the chain, PEM
     * @param key file with the private key, PEM
     * @param sessions that are kept for resumption, at most
     * @param sessionSeconds for which they are
     */
    record Tls(int port, Path certificate, Path key, int sessions, int sessionSeconds) {}

    private static final Set<String> NAMES = Set.of("--data", "--listen", "--port", "--tls-port", "--certificate",
            "--key", "--backend", "--backend-connections", "--session-timeout", "--tls-sessions",
            "--tls-session-seconds", "--threads", "--connections", "--keep-alive");

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
        int threads = whole(given, "--threads", 200, 1, 10_000);
        return new Options(path(given, "--data"), address("--listen", needed(given, "--listen")),
                whole(given, "--port", 8_080, 0, 65_535), tls(given), target(needed(given, "--backend")),
                whole(given, "--backend-connections", Math.min(threads, 64), 1, 10_000),
                whole(given, "--session-timeout", 1_200, 1, 1_000_000), threads,
                whole(given, "--connections", 20_000, 1, 1_000_000), whole(given, "--keep-alive", 300, 1, 1_000_000));
    }

    private static Tls tls(Map<String, String> given) throws Bad {
        if (!given.containsKey("--tls-port")) {
            for (String name : List.of("--certificate", "--key", "--tls-sessions", "--tls-session-seconds")) {
                if (given.containsKey(name)) {
                    throw new Bad(name + " is given, but not --tls-port");
                }
            }
            return null;
        }
        return new Tls(whole(given, "--tls-port", 0, 0, 65_535), path(given, "--certificate"), path(given, "--key"),
                whole(given, "--tls-sessions", 37_917, 0, 100_000_000),
                whole(given, "--tls-session-seconds", 900, 1, 86_400));
    }

    private static String needed(Map<String, String> given, String name) throws Bad {
        String value = given.get(name);
        if (value == null || value.isEmpty()) {
            throw new Bad(name + " is missing; try --help");
        }
        return value;
    }

    private static Path path(Map<String, String> given, String name) throws Bad {
        String value = needed(given, name);
        try {
            return Path.of(value).toAbsolutePath();
        } catch (InvalidPathException e) {
            throw new Bad(name + " is no path: '" + value + "'");
        }
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

    private static InetSocketAddress target(String text) throws Bad {
        int colon = text.lastIndexOf(':');
        String port = text.substring(colon + 1);
        if (colon <= 0 || !port.matches("[1-9][0-9]{0,4}") || Integer.parseInt(port) > 65_535) {
            throw new Bad("--backend takes ADDRESS:PORT such as 198.18.0.1:8090 or [::1]:8090, not '" + text + "'");
        }
        return new InetSocketAddress(address("--backend", text.substring(0, colon)), Integer.parseInt(port));
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
