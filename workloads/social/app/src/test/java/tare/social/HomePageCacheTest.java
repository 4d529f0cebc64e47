package tare.social;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertSame;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReferenceArray;
import org.junit.jupiter.api.Test;
import tare.social.data.Unavailable;

class HomePageCacheTest {
    private static final int USERS = 5;

    /** What each of several users gets who come while the page is being made. */
    private static AtomicReferenceArray<Object> outcomes(HomePageCache home, AtomicInteger made, boolean well) throws Exception {
        CountDownLatch go = new CountDownLatch(1);
        AtomicReferenceArray<Object> outcomes = new AtomicReferenceArray<>(USERS);
        List<Thread> users = new ArrayList<>();
        for (int i = 0; i < USERS; i++) {
            int number = i;
            Thread user = new Thread(() -> {
                try {
                    outcomes.set(number, home.get(() -> {
                        made.incrementAndGet();
                        waitFor(go);
                        if (!well) {
                            throw new Unavailable("gone");
                        }
                        return new byte[] {1};
                    }));
                } catch (Unavailable e) {
                    outcomes.set(number, e);
                }
            });
            users.add(user);
            user.start();
        }
        for (Thread user : users) {
            while (user.getState() != Thread.State.WAITING) {
                Thread.onSpinWait();
            }
        }
        go.countDown();
        for (Thread user : users) {
            user.join();
        }
        return outcomes;
    }

    private static void waitFor(CountDownLatch latch) {
        try {
            latch.await();
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    @Test
    void oneMakesItForAll() throws Exception {
        Counts counts = new Counts();
        AtomicInteger made = new AtomicInteger();
        AtomicReferenceArray<Object> outcomes = outcomes(new HomePageCache(3_600, counts), made, true);
        assertEquals(1, made.get());
        assertEquals(USERS - 1, counts.homeHits.sum());
        for (int i = 1; i < USERS; i++) {
            assertSame(outcomes.get(0), outcomes.get(i));
        }
    }

    @Test
    void allFailWithTheOneWhoTried() throws Exception {
        HomePageCache home = new HomePageCache(3_600, new Counts());
        AtomicInteger made = new AtomicInteger();
        AtomicReferenceArray<Object> outcomes = outcomes(home, made, false);
        assertEquals(1, made.get());
        for (int i = 0; i < USERS; i++) {
            assertEquals(Unavailable.class, outcomes.get(i).getClass());
        }
        assertEquals(7, home.get(() -> new byte[] {7})[0], "the next one tries again");
    }

    @Test
    void itIsMadeAgainWhenItsTimeIsOver() throws Exception {
        long second = 1_000_000_000;
        AtomicLong now = new AtomicLong(Long.MAX_VALUE - second);
        HomePageCache home = new HomePageCache(10, new Counts(), now::get);
        assertEquals(1, home.get(() -> new byte[] {1})[0]);
        now.addAndGet(10 * second - 1);
        assertEquals(1, home.get(() -> new byte[] {2})[0]);
        now.addAndGet(1);
        assertEquals(3, home.get(() -> {
            // It is as old as what it was made of.
            now.addAndGet(4 * second);
            return new byte[] {3};
        })[0]);
        now.addAndGet(6 * second);
        assertEquals(4, home.get(() -> new byte[] {4})[0]);
    }
}
