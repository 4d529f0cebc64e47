package tare.web;

import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.file.Path;
import java.util.List;
import java.util.Set;
import tare.common.Arguments;
import tare.common.InvalidInput;

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
    static Options parse(List<String> words) throws InvalidInput {
        Arguments given = new Arguments(words, NAMES, Set.of());
        int threads = given.whole("--threads", 200, 1, 10_000);
        return new Options(given.path("--data"), given.address("--listen"), given.port("--port", 8_080), tls(given),
                given.socketAddress("--backend", 1),
                given.whole("--backend-connections", Math.min(threads, 64), 1, 10_000),
                given.whole("--session-timeout", 1_200, 1, 1_000_000), threads,
                given.whole("--connections", 20_000, 1, 1_000_000), given.whole("--keep-alive", 300, 1, 1_000_000));
    }

    private static Tls tls(Arguments given) throws InvalidInput {
        if (!given.has("--tls-port")) {
            for (String name : List.of("--certificate", "--key", "--tls-sessions", "--tls-session-seconds")) {
                if (given.has(name)) {
                    throw new InvalidInput(name + " is given, but not --tls-port");
                }
            }
            return null;
        }
        return new Tls(given.port("--tls-port", 0), given.path("--certificate"), given.path("--key"),
                given.whole("--tls-sessions", 37_917, 0, 100_000_000),
                given.whole("--tls-session-seconds", 900, 1, 86_400));
    }
}
