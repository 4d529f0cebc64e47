package tare.business.measure;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.concurrent.atomic.AtomicBoolean;
import org.junit.jupiter.api.Test;
import tare.common.Jvm;

class MeterTest {
    @Test
    void aWindowHasExactlyTheOperationsBetweenItsEdges() throws InterruptedException {
        Meter meter = new Meter(1);
        AtomicBoolean ends = new AtomicBoolean();
        Thread thread = new Thread(() -> {
            for (long i = 0; !ends.get(); i++) {
                meter.operation(0, i, i + 1, i + 2);
                meter.dropped(1);
            }
        });
        thread.start();
        long last = 0;
        for (int i = 0; i < 200; i++) {
            long before = meter.begin();
            assertTrue(before >= last);
            Thread.sleep(0, 100_000);
            long after = meter.end();
            last = after;
            Durations durations = meter.durations();
            assertEquals(after - before, durations.response.count());
            assertEquals(after - before, durations.service.count());
            assertEquals(after - before, durations.lateness.count());
            assertEquals(2 * (after - before), durations.response.sum());
            assertTrue(Math.abs(meter.dropped() - (after - before)) <= 1, "one operation, one drop");
            assertTrue(meter.operations() >= after);
        }
        ends.set(true);
        thread.join();
        assertEquals(meter.operations(0), meter.operations());
        assertTrue(last > 0, "the thread did something");
    }

    @Test
    void recordingAllocatesNothing() {
        Meter meter = new Meter(2);
        meter.begin();
        Thread self = Thread.currentThread();
        long before = Jvm.allocatedBytes(self);
        for (int i = 0; i < 100_000; i++) {
            meter.operation(i & 1, i, i + 10, i * 1_000L);
        }
        long allocated = Jvm.allocatedBytes(self) - before;
        // What the measurement itself may take; an object an operation would be over a million bytes.
        assertTrue(allocated < 10_000, allocated + " bytes for 100,000 operations");
        assertEquals(100_000, meter.end());
    }

    @Test
    void theMachineTellsWhatItIs() {
        assertTrue(Jvm.collector().matches("Serial|Parallel|G1|Z|Shenandoah|Epsilon"), Jvm.collector());
        assertTrue(Jvm.liveHeap() > 0 && Jvm.liveHeap() < Jvm.heapMax());
        assertTrue(Jvm.cpuNanos() > 0 && Jvm.collections() > 0);
    }
}
