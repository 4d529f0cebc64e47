package tare.web.backend;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;

class LatenciesTest {
    @Test
    void valuesAreReadBackAlmostAsTheyWere() {
        for (long value = 0; value < 1L << 40; value = value * 3 / 2 + 1) {
            double back = Latencies.middle(Latencies.index(value));
            assertTrue(Math.abs(back - value) <= Math.max(0.5, value * 0.004), value + " is read back as " + back);
        }
        assertEquals(Latencies.index(1L << 50), Latencies.index(Long.MAX_VALUE), "the last bin has all that is longer");
    }

    @Test
    void quantilesAreThoseOfWhatWasCounted() {
        Latencies latencies = new Latencies();
        assertEquals(0, latencies.quantile(0.99));
        for (int i = 1; i <= 100; i++) {
            latencies.record(i);
        }
        assertEquals(99, latencies.quantile(0.99));
        assertEquals(100, latencies.quantile(1));
        assertEquals(1, latencies.quantile(0));
        latencies.record(-5);
        assertEquals(5_050, latencies.sum());
    }
}
