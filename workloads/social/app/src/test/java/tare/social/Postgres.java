package tare.social;

import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.Assumptions;

/** A PostgreSQL of the tests' own: begun when the first needs it, ended with them. Each test has a database of its own. */
final class Postgres {
    private static Postgres one;

    private final Path bin;
    private final Path folder;
    private int port;
    private int databases;

    /** The server; the test is skipped where there is none. */
    static synchronized Postgres needed() throws Exception {
        Path bin = programs();
        Assumptions.assumeTrue(bin != null, "no PostgreSQL is here, neither that of scripts/postgres.sh nor a distribution's");
        if (one == null) {
            one = new Postgres(bin);
        }
        return one;
    }

    private static Path programs() throws IOException {
        String cache = System.getenv("TARE_CACHE");
        List<Path> places = List.of(Path.of(cache == null || cache.isEmpty() ? "/var/cache/tare" : cache, "bundle"),
                Path.of(System.getProperty("user.home"), ".cache/tare/bundle"), Path.of("/usr/lib/postgresql"));
        for (Path place : places) {
            if (Files.isDirectory(place)) {
                try (Stream<Path> all = Files.list(place)) {
                    Path found = all.map(one -> one.resolve("bin"))
                            .filter(one -> Files.isExecutable(one.resolve("initdb"))
                                    && Files.isExecutable(one.resolve("pg_ctl")))
                            .max(Comparator.naturalOrder()).orElse(null);
                    if (found != null) {
                        return found;
                    }
                }
            }
        }
        return null;
    }

    private Postgres(Path bin) throws Exception {
        this.bin = bin;
        folder = Files.createTempDirectory("tare-social-test-");
        Runtime.getRuntime().addShutdownHook(new Thread(this::end));
        if (isRoot()) {
            run(false, "chown", "65534:65534", folder.toString());
        }
        run(true, bin.resolve("initdb").toString(), "-D", data(), "-U", "tare", "-A", "trust", "-N", "--locale=C",
                "-E", "UTF8");
        start();
        try (Connection connection = connect("postgres"); Statement statement = connection.createStatement()) {
            statement.execute("CREATE DATABASE empty");
            statement.execute("CREATE DATABASE small");
        }
        try (Connection connection = connect("small"); Statement statement = connection.createStatement()) {
            // They are beside the agent's part, which makes the tables of a trial.
            Path tables = Path.of("../agent");
            statement.execute(Files.readString(tables.resolve("schema.sql")));
            statement.execute(Rows.SQL);
            statement.execute(Files.readString(tables.resolve("indexes.sql")));
        }
    }

    private String data() {
        return folder.resolve("data").toString();
    }

    private static boolean isRoot() {
        return "root".equals(System.getProperty("user.name"));
    }

    private void start() throws Exception {
        // Somebody else may take the port in the meantime.
        for (int tries = 5;; tries--) {
            try (ServerSocket free = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
                port = free.getLocalPort();
            }
            try {
                run(true, bin.resolve("pg_ctl").toString(), "-D", data(), "-w", "-l", data() + "/log", "-o",
                        "-p " + port + " -c listen_addresses=127.0.0.1 -c unix_socket_directories= -c fsync=off",
                        "start");
                return;
            } catch (IOException e) {
                if (tries == 0) {
                    throw e;
                }
            }
        }
    }

    /** PostgreSQL does not run as root. */
    private void run(boolean asOther, String... words) throws Exception {
        List<String> command = new ArrayList<>();
        if (asOther && isRoot()) {
            command.addAll(List.of("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"));
        }
        command.addAll(Arrays.asList(words));
        Path said = folder.resolveSibling(folder.getFileName() + ".said");
        try {
            // What is started there goes on, and would keep a pipe open.
            int code = new ProcessBuilder(command).directory(folder.toFile()).redirectErrorStream(true)
                    .redirectOutput(said.toFile()).start().waitFor();
            if (code != 0) {
                throw new IOException(command + " ended with " + code + ": " + Files.readString(said));
            }
        } finally {
            Files.deleteIfExists(said);
        }
    }

    /** Ends it with all connections, and begins it again at the same port. */
    synchronized void restart() throws Exception {
        run(true, bin.resolve("pg_ctl").toString(), "-D", data(), "-w", "-m", "fast", "-l", data() + "/log", "restart");
    }

    private void end() {
        try {
            run(true, bin.resolve("pg_ctl").toString(), "-D", data(), "-m", "immediate", "-w", "stop");
        } catch (Exception e) {
            // It did not run.
        }
        try (Stream<Path> all = Files.walk(folder)) {
            all.sorted(Comparator.reverseOrder()).forEach(path -> path.toFile().delete());
        } catch (IOException e) {
            // It is in the temporary folder.
        }
    }

    int port() {
        return port;
    }

    Connection connect(String database) throws SQLException {
        return DriverManager.getConnection("jdbc:postgresql://127.0.0.1:" + port + "/" + database
                + "?user=tare&sslmode=disable&gssEncMode=disable");
    }

    /** A new database with the tests' rows; its name. */
    synchronized String database() throws SQLException {
        String name = "test" + ++databases;
        try (Connection connection = connect("postgres"); Statement statement = connection.createStatement()) {
            statement.execute("CREATE DATABASE " + name + " TEMPLATE small");
        }
        return name;
    }

    /** A database without tables. */
    String empty() {
        return "empty";
    }
}
