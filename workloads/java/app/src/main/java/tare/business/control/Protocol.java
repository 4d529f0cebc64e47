package tare.business.control;

import java.math.BigDecimal;
import tare.business.client.Crew;
import tare.business.logic.Kind;
import tare.business.measure.Durations;
import tare.business.measure.Histogram;
import tare.common.Jvm;

/** The lines of the protocol: what is asked, what is done, what is answered. All are in `docs/reference/java.md`. */
public final class Protocol {
    /** The release of the protocol, which `hello` names. */
    public static final String RELEASE = "1";
    /** The last answer: after it the application ends. */
    public static final String BYE = "bye";

    private final Crew crew;

    /** Directs these groups. */
    public Protocol(Crew crew) {
        this.crew = crew;
    }

    /** Does what a line asks for, and returns the answer: one line, or several that end with a point. */
    public String answer(String line) throws InterruptedException {
        String[] words = line.strip().split(" +");
        try {
            switch (words[0]) {
                case "hello":
                    return hello(words);
                case "load":
                    return load(words);
                default:
                    if (words.length > 1) {
                        throw new Unknown("'" + words[0] + "' stands alone, but '" + words[1] + "' follows it");
                    }
                    return answerWord(words[0]);
            }
        } catch (Crew.Refused | Unknown e) {
            return "error " + e.getMessage();
        }
    }

    private String answerWord(String word) throws InterruptedException, Crew.Refused, Unknown {
        switch (word) {
            case "start":
                crew.start();
                return "ok";
            case "begin":
                return "count " + crew.begin();
            case "count":
                return "count " + crew.count();
            case "end":
                return "count " + crew.end();
            case "stop":
                return "stopped " + crew.stop();
            case "result":
                return result();
            case "verify":
                return verify();
            case "quit":
                crew.stop();
                return BYE;
            default:
                throw new Unknown("'" + word + "' is no request; there are: hello load start begin count end stop result"
                        + " verify quit");
        }
    }

    /** A line that is no request. */
    private static final class Unknown extends Exception {
        Unknown(String why) {
            super(why);
        }
    }

    private String hello(String[] words) throws Unknown {
        if (words.length != 2 || !words[1].equals(RELEASE)) {
            throw new Unknown("this application speaks release " + RELEASE + " of the protocol: hello " + RELEASE);
        }
        return "ready " + RELEASE + " groups=" + crew.groups() + " live_heap_bytes=" + crew.liveHeap()
                + " heap_max_bytes=" + Jvm.heapMax() + " java=" + Jvm.release() + " collector=" + Jvm.collector() + " pid="
                + ProcessHandle.current().pid();
    }

    private String load(String[] words) throws Unknown, Crew.Refused {
        BigDecimal rate = null;
        Long seed = null;
        for (int i = 1; i < words.length; i++) {
            try {
                if (words[i].startsWith("rate=") && rate == null) {
                    rate = new BigDecimal(words[i].substring("rate=".length()));
                    continue;
                } else if (words[i].startsWith("seed=") && seed == null) {
                    // Seeds are 64 bits; those above the largest number of Java are as good as any.
                    seed = Long.parseUnsignedLong(words[i].substring("seed=".length()));
                    continue;
                }
            } catch (NumberFormatException e) {
                throw new Unknown("'" + words[i] + "' is no number that load takes");
            }
            throw new Unknown("load does not take '" + words[i] + "': load rate=R seed=S");
        }
        if (rate == null || seed == null) {
            throw new Unknown("load needs both: load rate=R seed=S");
        }
        if (rate.signum() < 0 || rate.doubleValue() > 1e9) {
            throw new Unknown("the rate must lie between 0 and 1e9 operations a second");
        }
        crew.load(rate.doubleValue(), seed);
        return "ok";
    }

    private String verify() throws Crew.Refused {
        String wrong = crew.wrong();
        return wrong == null ? "right" : "wrong " + oneLine(wrong);
    }

    private static String oneLine(String text) {
        return text.replaceAll("[^ -~]+", " ");
    }

    private String result() throws Crew.Refused {
        Durations durations = crew.durations();
        StringBuilder out = new StringBuilder(1 << 16);
        bins(out, "response", durations.response);
        bins(out, "service", durations.service);
        bins(out, "lateness", durations.lateness);
        for (Kind kind : Kind.values()) {
            out.append("transaction ").append(kind.id()).append(' ').append(crew.operations(kind)).append('\n');
        }
        value(out, "dropped", crew.dropped());
        value(out, "heap_used_bytes", Jvm.heap().getUsed());
        value(out, "heap_committed_bytes", Jvm.heap().getCommitted());
        value(out, "allocated_bytes", crew.allocatedBytes());
        value(out, "collections", Jvm.collections());
        value(out, "collection_ms", Jvm.collectionMillis());
        value(out, "cpu_ns", Jvm.cpuNanos());
        return out.append('.').toString();
    }

    private static void bins(StringBuilder out, String name, Histogram histogram) {
        histogram.forEachBin((low, high, count) -> out.append("bin ").append(name).append(' ').append(low).append(' ')
                .append(high).append(' ').append(count).append('\n'));
        out.append("stat ").append(name).append(' ').append(histogram.min()).append(' ').append(histogram.max())
                .append(' ').append(histogram.sum()).append('\n');
    }

    private static void value(StringBuilder out, String name, long value) {
        out.append("value ").append(name).append(' ').append(value).append('\n');
    }
}
