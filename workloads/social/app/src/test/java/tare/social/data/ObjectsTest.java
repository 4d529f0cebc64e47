package tare.social.data;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotSame;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.Test;
import tare.social.data.Objects.Kind;

class ObjectsTest {
    private record Thing(int bytes) implements Objects.Sized {}

    @Test
    void anObjectIsReadOnceUntilItIsCleared() throws Exception {
        Objects objects = new Objects(3_600, 1 << 20);
        Thing one = objects.get(Kind.EVENT, 1, () -> new Thing(10));
        assertSame(one, objects.get(Kind.EVENT, 1, () -> new Thing(10)));
        assertNotSame(one, objects.get(Kind.PERSON, 1, () -> new Thing(11)), "of another kind");
        objects.clear(Kind.EVENT, 1);
        assertNotSame(one, objects.get(Kind.EVENT, 1, () -> new Thing(12)));
        assertEquals(1, objects.hits());
        assertEquals(3, objects.misses());
    }

    @Test
    void whatWasReadBeforeAChangeIsNotKept() throws Exception {
        Objects objects = new Objects(3_600, 1 << 20);
        Thing old = objects.get(Kind.EVENT, 1, () -> {
            // Somebody changes it after it was read, and before it would be kept.
            objects.clear(Kind.EVENT, 1);
            return new Thing(10);
        });
        assertNotSame(old, objects.get(Kind.EVENT, 1, () -> new Thing(10)));
    }

    @Test
    void whatIsNotThereIsNotKeptNorIsAFailure() throws Exception {
        Objects objects = new Objects(3_600, 1 << 20);
        assertNull(objects.get(Kind.EVENT, 1, () -> null));
        assertThrows(Unavailable.class, () -> objects.get(Kind.EVENT, 1, () -> {
            throw new Unavailable("gone");
        }));
        assertEquals(5, objects.<Thing>get(Kind.EVENT, 1, () -> new Thing(5)).bytes());
    }

    @Test
    void thereIsAnEndToWhatIsKept() throws Exception {
        long room = 1 << 20;
        Objects objects = new Objects(3_600, room);
        for (int i = 0; i < 100_000; i++) {
            int size = i % 1_000;
            objects.get(Kind.EVENT, i, () -> new Thing(size));
            assertTrue(objects.bytes() <= room);
        }
        assertTrue(objects.bytes() > room / 2, "it is used");
        long hits = objects.hits();
        objects.get(Kind.EVENT, 99_999, () -> new Thing(1));
        objects.get(Kind.EVENT, 0, () -> new Thing(1));
        assertEquals(hits + 1, objects.hits(), "the last one is here, the first is not");
        objects.get(Kind.TAG, "huge", () -> new Thing((int) room));
        assertTrue(objects.bytes() <= room, "what is larger than all is not kept");
    }

    @Test
    void anObjectIsReadAgainWhenItsTimeIsOver() throws Exception {
        long second = 1_000_000_000;
        // It may be near its end, and begins again.
        AtomicLong now = new AtomicLong(Long.MAX_VALUE - second);
        Objects objects = new Objects(1_800, 1 << 20, now::get);
        Thing one = objects.get(Kind.EVENT, 1, () -> new Thing(10));
        now.addAndGet(1_799 * second);
        assertSame(one, objects.get(Kind.EVENT, 1, () -> new Thing(11)));
        now.addAndGet(second);
        Thing two = objects.get(Kind.EVENT, 1, () -> new Thing(12));
        assertEquals(12, two.bytes(), "that it was asked for meanwhile keeps it no longer");
        now.addAndGet(1_799 * second);
        assertSame(two, objects.get(Kind.EVENT, 1, () -> new Thing(13)), "for as long again");
        assertEquals(2, objects.hits());
    }

    @Test
    void nothingIsKeptWhereThatIsWanted() throws Exception {
        Objects objects = new Objects(0, 1 << 20);
        objects.get(Kind.EVENT, 1, () -> new Thing(10));
        assertEquals(0, objects.bytes());
        objects.get(Kind.EVENT, 1, () -> new Thing(10));
        assertEquals(0, objects.hits());
    }
}
