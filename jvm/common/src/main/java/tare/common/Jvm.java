package tare.common;

import com.sun.management.OperatingSystemMXBean;
import com.sun.management.ThreadMXBean;
import java.lang.management.GarbageCollectorMXBean;
import java.lang.management.ManagementFactory;
import java.lang.management.MemoryUsage;
import java.util.function.ToLongFunction;

/** Figures of the virtual machine. */
public final class Jvm {
    private static final OperatingSystemMXBean SYSTEM =
            ManagementFactory.getPlatformMXBean(OperatingSystemMXBean.class);
    private static final ThreadMXBean THREADS = ManagementFactory.getPlatformMXBean(ThreadMXBean.class);

    private Jvm() {}

    /** Live heap, bytes: what is in use when all garbage was collected. */
    public static long liveHeap() {
        long least = Long.MAX_VALUE;
        // The first collection may leave what only became unreachable by it.
        for (int i = 0; i < 3; i++) {
            System.gc();
            least = Math.min(least, heap().getUsed());
        }
        return least;
    }

    /** The heap. */
    public static MemoryUsage heap() {
        return ManagementFactory.getMemoryMXBean().getHeapMemoryUsage();
    }

    /** Largest size of the heap, bytes. */
    public static long heapMax() {
        return Runtime.getRuntime().maxMemory();
    }

    /** The collector's name: Serial, Parallel, G1, Z, Shenandoah, Epsilon. */
    public static String collector() {
        String first = ManagementFactory.getGarbageCollectorMXBeans().get(0).getName();
        if (first.equals("Copy") || first.equals("MarkSweepCompact")) {
            return "Serial";
        }
        if (first.startsWith("PS ")) {
            return "Parallel";
        }
        int end = 0;
        while (end < first.length() && Character.isLetterOrDigit(first.charAt(end))) {
            end++;
        }
        String name = first.substring(0, end);
        return name.startsWith("ZGC") ? "Z" : name;
    }

    /** Release of Java, such as 17.0.9. */
    public static String release() {
        return System.getProperty("java.version");
    }

    /** Collections of garbage so far. */
    public static long collections() {
        return sum(GarbageCollectorMXBean::getCollectionCount);
    }

    /** How long they took, milliseconds. */
    public static long collectionMillis() {
        return sum(GarbageCollectorMXBean::getCollectionTime);
    }

    private static long sum(ToLongFunction<GarbageCollectorMXBean> figure) {
        // A collector that does not count has -1.
        return ManagementFactory.getGarbageCollectorMXBeans().stream().mapToLong(figure).map(one -> Math.max(one, 0)).sum();
    }

    /** CPU of the whole process so far, nanoseconds. */
    public static long cpuNanos() {
        return SYSTEM.getProcessCpuTime();
    }

    /** Allocated by a thread so far, bytes. */
    public static long allocatedBytes(Thread thread) {
        return Math.max(THREADS.getThreadAllocatedBytes(thread.getId()), 0);
    }

    /** CPU of this thread so far, nanoseconds. */
    public static long threadCpuNanos() {
        return THREADS.getCurrentThreadCpuTime();
    }
}
