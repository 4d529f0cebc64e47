package tare.business;

import java.io.IOException;
import java.net.BindException;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.util.Arrays;
import java.util.List;
import java.util.Set;
import tare.business.client.Crew;
import tare.business.control.Listener;
import tare.common.Arguments;
import tare.common.InvalidInput;

/** The command line. Exit codes: 0 well, 1 failed or wrong, 2 bad arguments. */
public final class Main {
    /** More groups than that are a mistake: 25 MB each. */
    private static final long MOST_GROUPS = 1_000;
    private static final long SECOND = 1_000_000_000L;

    private static final String HELP = """
            tare-java: a three-tier business application in one virtual machine: clients, business logic, object store.
            A data group is about 25 MB of live objects and one thread; no disk, no network.

            java -jar tare-java.jar serve --listen ADDRESS:PORT [--groups N] [--seed S]
                waits for a driver, which directs it; prints one line when it is ready
            java -jar tare-java.jar run [--groups N] [--seed S] [--rate R] [--warm-up T] [--measure T] [--json]
                offers load to itself, verifies, and prints what it measured
            java -jar tare-java.jar --help

              --listen ADDRESS:PORT  where drivers connect, such as 127.0.0.1:7117 (no more than one at a time)
              --groups N             data groups, each with a thread (6)
              --seed S               of data, transactions and schedule: the same seed does the same (1)
              --rate R               operations a second of all groups; 0 is as fast as it goes (0)
              --warm-up T            before the measured window: 10s, 500ms, 2m (10s)
              --measure T            length of the measured window (60s)
              --json                 one JSON object on standard output, not a table
            """;

    private Main() {}

    /** Does what the words say, and exits. */
    public static void main(String[] words) {
        int code;
        try {
            code = perform(Arrays.asList(words));
        } catch (InvalidInput e) {
            System.err.println("tare-java: " + e.getMessage());
            code = 2;
        } catch (BindException e) {
            System.err.println("tare-java: cannot listen: " + e.getMessage());
            code = 1;
        } catch (IOException | Crew.Refused e) {
            System.err.println("tare-java: " + e.getMessage());
            code = 1;
        } catch (OutOfMemoryError e) {
            System.err.println("tare-java: the heap is too small (" + e.getMessage()
                    + "): raise -Xmx, 40 MB a group at least, or lower --groups");
            code = 1;
        } catch (InterruptedException e) {
            code = 1;
        }
        System.exit(code);
    }

    static int perform(List<String> words)
            throws InvalidInput, Crew.Refused, IOException, InterruptedException {
        if (words.isEmpty()) {
            throw new InvalidInput("say serve or run; try --help");
        }
        List<String> rest = words.subList(1, words.size());
        switch (words.get(0)) {
            case "--help", "-h", "help" -> {
                System.out.print(HELP);
                return 0;
            }
            case "serve" -> {
                return serve(rest);
            }
            case "run" -> {
                Set<String> options = Set.of("--groups", "--seed", "--rate", "--warm-up", "--measure");
                Arguments given = new Arguments(rest, options, Set.of("--json"));
                StandaloneRun.Settings wish = new StandaloneRun.Settings(groups(given), seed(given), given.decimal("--rate", 0, 1e9),
                        given.span("--warm-up", 10 * SECOND), given.span("--measure", 60 * SECOND));
                if (wish.measure() == 0) {
                    throw new InvalidInput("--measure must be longer than nothing");
                }
                return StandaloneRun.run(wish, given.has("--json"));
            }
            default -> throw new InvalidInput("unknown command '" + words.get(0) + "'; try --help");
        }
    }

    private static int groups(Arguments given) throws InvalidInput {
        return (int) given.whole("--groups", 6, 1, MOST_GROUPS);
    }

    private static long seed(Arguments given) throws InvalidInput {
        return given.whole("--seed", 1, 0, Long.MAX_VALUE);
    }

    private static int serve(List<String> words) throws InvalidInput, IOException, InterruptedException {
        Arguments given = new Arguments(words, Set.of("--listen", "--groups", "--seed"), Set.of());
        InetSocketAddress address = given.socketAddress("--listen", 0);
        int groups = groups(given);
        long seed = seed(given);
        try (ServerSocket socket = new ServerSocket()) {
            // An earlier one that ended a moment ago must not be in the way.
            socket.setReuseAddress(true);
            // Bound before loading, so that a taken port is reported at once.
            socket.bind(address, 1);
            Crew crew = new Crew(groups, seed);
            String host = address.getAddress().getHostAddress();
            String shown = host.contains(":") ? "[" + host + "]" : host;
            System.out.println("listening " + shown + ":" + socket.getLocalPort() + " groups=" + groups
                    + " live_heap_bytes=" + crew.liveHeap());
            System.out.flush();
            new Listener(socket, crew).serve();
        }
        return 0;
    }
}
