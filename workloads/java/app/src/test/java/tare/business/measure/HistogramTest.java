package tare.business.measure;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

class HistogramTest {
    private static List<long[]> bins(Histogram histogram) {
        List<long[]> all = new ArrayList<>();
        histogram.forEachBin((low, high, count) -> all.add(new long[] {low, high, count}));
        return all;
    }

    @Test
    void everyValueFallsIntoItsBinAndIsOffByAThousandthAtMost() {
        for (long value = 0; value < 1L << 37; value = value * 5 / 4 + 1) {
            Histogram histogram = new Histogram();
            histogram.record(value);
            long[] bin = bins(histogram).get(0);
            assertTrue(bin[0] <= value && value <= bin[1], value + " in " + bin[0] + " to " + bin[1]);
            assertTrue(bin[1] - bin[0] <= value / 1_000, value + " in " + bin[0] + " to " + bin[1]);
        }
    }

    @Test
    void binsLieSideBySide() {
        Histogram histogram = new Histogram();
        for (long value = 0; value < 10_000; value++) {
            histogram.record(value);
        }
        long next = 0;
        long count = 0;
        for (long[] bin : bins(histogram)) {
            assertEquals(next, bin[0]);
            next = bin[1] + 1;
            count += bin[2];
        }
        assertEquals(10_000, count);
        assertEquals(49_995_000, histogram.sum());
        assertEquals(0, histogram.min());
        assertEquals(9_999, histogram.max());
    }

    @Test
    void quantilesAreThoseOfSortedValues() {
        Histogram histogram = new Histogram();
        for (long value : new long[] {5, 1, 4, 2, 3}) {
            histogram.record(value);
        }
        assertEquals(1, histogram.quantile(0));
        assertEquals(3, histogram.quantile(0.5));
        assertEquals(5, histogram.quantile(0.99));
        assertEquals(0, new Histogram().quantile(0.5));
    }

    @Test
    void whatIsTooLongKeepsItsExactMaximum() {
        Histogram histogram = new Histogram();
        histogram.record(Long.MAX_VALUE / 2);
        histogram.record(-3);
        assertEquals(Long.MAX_VALUE / 2, histogram.max());
        assertEquals(0, histogram.min());
        assertEquals(2, bins(histogram).size());
    }

    @Test
    void addingIsTheSameAsRecordingEverythingInOne() {
        Histogram left = new Histogram();
        Histogram right = new Histogram();
        Histogram both = new Histogram();
        for (long value = 1; value < 1_000_000; value = value * 3 + 1) {
            left.record(value);
            right.record(value * 2);
            both.record(value);
            both.record(value * 2);
        }
        left.add(right);
        left.add(new Histogram());
        assertEquals(both.sum(), left.sum());
        assertEquals(both.min(), left.min());
        assertEquals(both.max(), left.max());
        List<long[]> expected = bins(both);
        List<long[]> got = bins(left);
        assertEquals(expected.size(), got.size());
        for (int i = 0; i < got.size(); i++) {
            assertEquals(expected.get(i)[0], got.get(i)[0]);
            assertEquals(expected.get(i)[2], got.get(i)[2]);
        }
        left.clear();
        assertEquals(0, left.count());
        assertTrue(bins(left).isEmpty());
    }
}
