package tare.business.logic;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;
import tare.business.store.Company;
import tare.business.store.District;
import tare.business.store.Group;
import tare.business.store.Loader;
import tare.business.store.Sizes;

class SessionTest {
    private static Session opened(long seed) {
        Company company = new Company(seed);
        Group group = Loader.addGroup(company, seed);
        return new Session(company, group, seed);
    }

    private static Session after(Session session, int decks) {
        for (int i = 0; i < 33 * decks; i++) {
            session.perform(session.deal());
        }
        return session;
    }

    @Test
    void everythingAddsUpAfterLoadingAndAfterWork() {
        Session session = opened(3);
        assertNull(session.wrong());
        assertNull(after(session, 200).wrong());
        assertNull(after(session, 1).wrong());
    }

    @Test
    void eachKindBooksWhatItSaysAndAddsUpByItself() {
        for (Kind kind : Kind.values()) {
            Session session = opened(4);
            for (int i = 0; i < 300; i++) {
                session.perform(kind);
            }
            assertNull(session.wrong(), kind.id());
            boolean books = session.group.payments() > Sizes.HISTORY || placed(session) > 10L * Sizes.ORDERS
                    || waiting(session) != 10 * Sizes.WAITING;
            // A delivery finds nothing to do where nothing came in.
            assertEquals(kind == Kind.NEW_ORDER || kind == Kind.PAYMENT, books, kind.id());
            assertTrue(session.log.nodes() > 300 * 2, kind.id());
        }
    }

    private static long placed(Session session) {
        long all = 0;
        for (int number = 1; number <= Sizes.DISTRICTS; number++) {
            all += session.group.district(number).placed();
        }
        return all;
    }

    private static int waiting(Session session) {
        int all = 0;
        for (int number = 1; number <= Sizes.DISTRICTS; number++) {
            all += session.group.district(number).newOrders.size();
        }
        return all;
    }

    @Test
    void whatIsKeptStaysBoundedAndWhatIsRetiredStillCounts() {
        Session session = after(opened(5), 2_000);
        long ordered = placed(session);
        assertTrue(ordered > 10L * Sizes.ORDERS + 19_000, "most orders were retired: " + ordered);
        for (int number = 1; number <= Sizes.DISTRICTS; number++) {
            District district = session.group.district(number);
            assertEquals(Sizes.ORDERS, district.orders.size());
            assertTrue(district.newOrders.size() < Sizes.ORDERS / 2, district.newOrders.size() + " wait");
        }
        assertEquals(Sizes.HISTORY, session.group.history.size());
        assertNull(session.wrong());
    }

    @Test
    void deliveriesKeepUpWithOrders() {
        Session session = after(opened(6), 500);
        int before = waiting(session);
        int waiting = waiting(after(session, 500));
        assertTrue(waiting < before + 200, before + " waited, then " + waiting);
        assertTrue(waiting >= Sizes.DISTRICTS * Sizes.WAITING);
    }

    @Test
    void theSameSeedDoesTheSame() {
        Session one = after(opened(9), 30);
        Session same = after(opened(9), 30);
        Session other = after(opened(10), 30);
        assertEquals(one.log.sum(), same.log.sum());
        assertEquals(one.log.nodes(), same.log.nodes());
        assertNotEquals(one.log.sum(), other.log.sum());
    }

    @Test
    void anOrderThatTheStoreNeverSawIsFound() {
        Session session = opened(11);
        session.ledger.tamper();
        String wrong = session.wrong();
        assertNotNull(wrong);
        assertTrue(wrong.contains("orders are"), wrong);
    }
}
