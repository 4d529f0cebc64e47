package tare.business.client;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import tare.business.logic.Kind;
import tare.business.measure.Durations;

@Timeout(120)
class CrewTest {
    @Test
    void aGroupIsAboutTwentyFiveMegabytesOfLiveObjects() {
        Crew crew = new Crew(3, 1);
        long group = crew.liveHeapPerGroup();
        assertTrue(group > 22_000_000 && group < 28_000_000, group + " bytes");
        assertTrue(crew.liveHeap() > 3 * group);
    }

    @Test
    void countsWindowsAndKindsAgreeWithEachOther() throws Crew.Refused, InterruptedException {
        Crew crew = new Crew(2, 1);
        crew.load(0, 1);
        crew.start();
        long before = crew.begin();
        while (crew.count() < before + 1_000) {
            Thread.sleep(1);
        }
        long after = crew.end();
        long all = crew.stop();
        Durations durations = crew.durations();
        assertEquals(after - before, durations.response.count());
        assertEquals(after - before, durations.lateness.count());
        assertEquals(0, durations.lateness.max());
        assertEquals(durations.response.sum(), durations.service.sum());
        assertTrue(all >= after);
        long kinds = 0;
        for (Kind kind : Kind.values()) {
            kinds += crew.operations(kind);
        }
        assertEquals(all, kinds);
        assertEquals(all, crew.count());
        assertTrue(crew.allocatedBytes() > 1_000 * all, crew.allocatedBytes() + " bytes");
        assertNull(crew.wrong());
    }

    @Test
    void aThreadThatIsASecondBehindDropsWhatItMissed() throws Crew.Refused, InterruptedException {
        Crew crew = new Crew(1, 1);
        crew.load(10_000_000, 1);
        crew.start();
        do {
            crew.begin();
            Thread.sleep(300);
            crew.end();
        } while (crew.dropped() == 0);
        crew.stop();
        // The start that is a second behind is never done.
        assertTrue(crew.durations().lateness.max() <= Worker.MOST_BEHIND_NANOS);
        assertTrue(crew.durations().lateness.max() > 0);
        assertNull(crew.wrong());
    }

    @Test
    void stopEndsThreadsThatWaitForADistantStart() throws Crew.Refused, InterruptedException {
        Crew crew = new Crew(2, 1);
        crew.load(0.000_001, 1);
        crew.start();
        assertEquals(0, crew.stop());
        crew.load(0, 1);
        crew.start();
        while (crew.count() == 0) {
            Thread.sleep(1);
        }
        assertTrue(crew.stop() > 0, "a second load follows the first");
    }

    @Test
    void ordersOutOfTurnAreRefused() throws Crew.Refused, InterruptedException {
        Crew crew = new Crew(1, 1);
        assertThrows(Crew.Refused.class, crew::start);
        assertThrows(Crew.Refused.class, crew::begin);
        assertThrows(Crew.Refused.class, crew::end);
        assertThrows(Crew.Refused.class, crew::durations);
        crew.load(1, 1);
        crew.start();
        assertThrows(Crew.Refused.class, crew::start);
        assertThrows(Crew.Refused.class, crew::wrong);
        assertThrows(Crew.Refused.class, () -> crew.load(1, 1));
        crew.stop();
        assertNull(crew.wrong());
    }
}
