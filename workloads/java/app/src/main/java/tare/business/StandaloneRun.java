package tare.business;

import java.util.EnumMap;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import tare.business.client.Crew;
import tare.business.logic.Kind;
import tare.business.logic.Session;
import tare.business.measure.Durations;
import tare.business.measure.Histogram;
import tare.common.Json;
import tare.common.Jvm;

/** A run without a driver: load, a measured window, what each kind of transaction costs, verification. */
final class StandaloneRun {
    /** Transactions that are measured one by one, by the deck: 33 of each deck. */
    private static final int PROFILED = 33 * 400;
    private static final double[] QUANTILES = {0.5, 0.9, 0.95, 0.99, 0.999};

    /**
     * What is wished for.
     *
     * @param rate operations a second, 0 as fast as it goes
     * @param warmUp nanoseconds
     * @param measure nanoseconds
     */
    record Settings(int groups, long seed, double rate, long warmUp, long measure) {}

    /** What a kind of transaction costs, in all. */
    private static final class Cost {
        private long operations;
        private long cpuNanos;
        private long allocatedBytes;
    }

    private final Settings wish;
    private final Crew crew;
    private long operations;
    private long elapsed;
    private long cpu;
    private long collections;
    private long collectionMillis;
    private Map<Kind, Cost> costs;
    private String wrong;
    private long liveHeapAfter;

    private StandaloneRun(Settings wish) {
        this.wish = wish;
        crew = new Crew(wish.groups(), wish.seed());
    }

    /** Runs, and returns the exit code: 0 where everything adds up. */
    static int run(Settings wish, boolean json) throws Crew.Refused, InterruptedException {
        StandaloneRun alone = new StandaloneRun(wish);
        alone.measure();
        alone.costs = alone.profile();
        alone.wrong = alone.crew.wrong();
        alone.liveHeapAfter = Jvm.liveHeap();
        System.out.println(json ? alone.json() : alone.table());
        return alone.wrong == null ? 0 : 1;
    }

    private void measure() throws Crew.Refused, InterruptedException {
        crew.load(wish.rate(), wish.seed());
        crew.start();
        TimeUnit.NANOSECONDS.sleep(wish.warmUp());
        long cpuBefore = Jvm.cpuNanos();
        long collectionsBefore = Jvm.collections();
        long millisBefore = Jvm.collectionMillis();
        long before = crew.begin();
        long began = System.nanoTime();
        TimeUnit.NANOSECONDS.sleep(wish.measure());
        operations = crew.end() - before;
        elapsed = System.nanoTime() - began;
        cpu = Jvm.cpuNanos() - cpuBefore;
        collections = Jvm.collections() - collectionsBefore;
        collectionMillis = Jvm.collectionMillis() - millisBefore;
        crew.stop();
    }

    /** Each transaction by itself on this thread, in the deck's order, after the code has been compiled by the load. */
    private Map<Kind, Cost> profile() throws Crew.Refused {
        Map<Kind, Cost> all = new EnumMap<>(Kind.class);
        for (Kind kind : Kind.values()) {
            all.put(kind, new Cost());
        }
        Session session = crew.session(0);
        Thread self = Thread.currentThread();
        long clock = clockCost();
        for (int i = 0; i < PROFILED; i++) {
            Kind kind = session.deal();
            long bytes = Jvm.allocatedBytes(self);
            long start = Jvm.threadCpuNanos();
            session.perform(kind);
            long end = Jvm.threadCpuNanos();
            Cost cost = all.get(kind);
            cost.operations++;
            cost.cpuNanos += Math.max(end - start - clock, 0);
            cost.allocatedBytes += Jvm.allocatedBytes(self) - bytes;
        }
        return all;
    }

    /** What asking for the CPU of a thread takes by itself, nanoseconds: the least of many. */
    private static long clockCost() {
        long least = Long.MAX_VALUE;
        for (int i = 0; i < 20_000; i++) {
            long start = Jvm.threadCpuNanos();
            least = Math.min(least, Jvm.threadCpuNanos() - start);
        }
        return least;
    }

    private double perSecond() {
        return operations * 1e9 / elapsed;
    }

    private String table() throws Crew.Refused {
        Durations durations = crew.durations();
        StringBuilder out = new StringBuilder();
        line(out, "%d groups, %.1f MB of live heap a group, %.1f MB in all, %.1f MB after the run", wish.groups(),
                crew.liveHeapPerGroup() / 1e6, crew.liveHeap() / 1e6, liveHeapAfter / 1e6);
        line(out, "Java %s, %s collector, %.1f MB of heap held", Jvm.release(), Jvm.collector(),
                Jvm.heap().getCommitted() / 1e6);
        line(out, "%d operations in %.3f s: %.1f a second; %d starts dropped", operations, elapsed / 1e9, perSecond(),
                crew.dropped());
        line(out, "CPU %.3f s, %.1f us an operation; %d collections, %d ms", cpu / 1e9,
                cpu / 1e3 / Math.max(operations, 1), collections, collectionMillis);
        row(out, "response", durations.response);
        row(out, "service", durations.service);
        row(out, "lateness", durations.lateness);
        line(out, "%-16s %10s %10s %12s", "transaction", "in all", "CPU us", "bytes");
        for (Kind kind : Kind.values()) {
            Cost cost = costs.get(kind);
            line(out, "%-16s %10d %10.1f %12.0f", kind.id(), crew.operations(kind),
                    cost.cpuNanos / 1e3 / Math.max(cost.operations, 1),
                    (double) cost.allocatedBytes / Math.max(cost.operations, 1));
        }
        return out.append(wrong == null ? "everything adds up" : "WRONG: " + wrong).toString();
    }

    private static void row(StringBuilder out, String name, Histogram histogram) {
        out.append(String.format(Locale.ROOT, "%-9s us", name));
        for (double share : QUANTILES) {
            out.append(String.format(Locale.ROOT, "  p%s %.1f", percent(share), histogram.quantile(share) / 1e3));
        }
        line(out, "  max %.1f", histogram.max() / 1e3);
    }

    private static String percent(double share) {
        return String.format(Locale.ROOT, "%.1f", share * 100).replace(".0", "");
    }

    private static void line(StringBuilder out, String format, Object... values) {
        out.append(String.format(Locale.ROOT, format, values)).append('\n');
    }

    private String json() throws Crew.Refused {
        Durations durations = crew.durations();
        Json json = new Json(3);
        json.put("groups", wish.groups()).put("seed", wish.seed()).put("offered_per_s", wish.rate());
        json.put("java", Jvm.release()).put("collector", Jvm.collector());
        json.put("live_heap_bytes", crew.liveHeap()).put("live_heap_bytes_per_group", crew.liveHeapPerGroup());
        json.put("live_heap_bytes_after", liveHeapAfter);
        json.put("heap_max_bytes", Jvm.heapMax()).put("heap_committed_bytes", Jvm.heap().getCommitted());
        json.put("elapsed_s", elapsed / 1e9).put("operations", operations).put("operations_per_s", perSecond());
        json.put("dropped", crew.dropped()).put("cpu_s", cpu / 1e9);
        json.put("collections", collections).put("collection_ms", collectionMillis);
        histogram(json, "response", durations.response);
        histogram(json, "service", durations.service);
        histogram(json, "lateness", durations.lateness);
        json.open("transactions");
        for (Kind kind : Kind.values()) {
            Cost cost = costs.get(kind);
            json.open(kind.id()).put("operations", crew.operations(kind));
            json.put("cpu_us", cost.cpuNanos / 1e3 / Math.max(cost.operations, 1));
            json.put("allocated_bytes", (double) cost.allocatedBytes / Math.max(cost.operations, 1)).close();
        }
        json.close();
        if (wrong != null) {
            json.put("wrong", wrong);
        }
        return json.put("right", wrong == null).end();
    }

    private static void histogram(Json json, String name, Histogram histogram) {
        json.open(name).put("count", histogram.count());
        for (double share : QUANTILES) {
            json.put("p" + percent(share).replace('.', '_') + "_us", histogram.quantile(share) / 1e3);
        }
        json.put("max_us", histogram.max() / 1e3).close();
    }
}
