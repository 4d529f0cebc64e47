package tare.business.store;

import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.math.BigDecimal;
import java.util.stream.Stream;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;
import tare.business.logic.Session;

class VerificationTest {
    private static final BigDecimal CENT = Money.cents(1);

    /** Something that falsifies a group. */
    interface Tampering {
        void with(Company company, Group group);
    }

    private static Arguments found(String name, String reason, Tampering tampering) {
        return Arguments.of(name, reason, tampering);
    }

    static Stream<Arguments> tamperings() {
        return Stream.of(
                found("year-to-date of the group", "the group took", (c, g) -> g.tamper(CENT, Money.ZERO)),
                found("retired history", "payments of the history", (c, g) -> g.tamper(Money.ZERO, CENT)),
                found("year-to-date of a district", "district 3 took",
                        (c, g) -> g.district(3).tamper(0, CENT, Money.ZERO)),
                found("retired orders", "orders are", (c, g) -> g.district(3).tamper(0, Money.ZERO, CENT)),
                found("number of the next order", "the next has the number",
                        (c, g) -> g.district(3).tamper(1, Money.ZERO, Money.ZERO)),
                found("a payment that is lost", "payments of the history", (c, g) -> g.history.pollLastEntry()),
                found("a payment of another amount", "payments of the history", (c, g) -> {
                    History last = g.history.lastEntry().getValue();
                    g.history.put(last.number(), new History(last.number(), last.district(), last.customer(),
                            last.date(), last.amount().add(CENT), last.text()));
                }),
                found("a payment booked to nobody's ledger", "payments of the history",
                        (c, g) -> g.pay(g.district(1), c.customer(1, 1, 1), 1, CENT, "")),
                found("a customer's balance", "customer 5 owes", (c, g) -> c.customer(1, 2, 5).tamper(CENT)),
                found("a customer's payment", "its customers paid", (c, g) -> c.customer(1, 2, 5).pay(CENT)),
                found("an order's total", "orders are",
                        (c, g) -> g.district(4).orders.lastEntry().getValue().tamper(CENT)),
                found("totals of two orders exchanged", "is not the sum of its lines", (c, g) -> {
                    Order one = g.district(4).orders.firstEntry().getValue();
                    Order other = g.district(5).orders.firstEntry().getValue();
                    BigDecimal total = one.total();
                    one.tamper(other.total());
                    other.tamper(total);
                }),
                found("an order that is lost", "orders are", (c, g) -> g.district(4).orders.pollFirstEntry()),
                found("a line that is lost", "is not the sum of its lines",
                        (c, g) -> g.district(4).orders.firstEntry().getValue().lines.remove(0)),
                found("a line of nothing", "the lines of all orders", (c, g) -> g.district(4).orders.lastEntry()
                        .getValue().add(new OrderLine(1, 3, Money.ZERO, ""))),
                found("an order that waits no more", "wait", (c, g) -> g.district(4).newOrders.pollFirstEntry()),
                found("an order that nobody delivered", "was delivered and waits",
                        (c, g) -> g.district(4).orders.lastEntry().getValue().deliver(1, 1)),
                found("a delivery that nobody received", "were delivered, its customers received",
                        (c, g) -> g.district(4).takeWaiting().deliver(1, 1)),
                found("a delivery received twice", "deliveries are",
                        (c, g) -> c.customer(1, 1, 1).receive(g.district(1).orders.firstEntry().getValue())),
                found("stock that nobody delivered", "item 7:", (c, g) -> g.stock.get(7).tamper(1)),
                found("stock that nobody bought", "pieces were sold", (c, g) -> g.stock.get(7).sell(1)));
    }

    @ParameterizedTest(name = "{0}")
    @MethodSource("tamperings")
    void whatDoesNotAddUpIsFound(String name, String reason, Tampering tampering) {
        Company company = new Company(1);
        Group group = Loader.addGroup(company, 1);
        Session session = new Session(company, group, 1);
        for (int i = 0; i < 33 * 10; i++) {
            session.perform(session.deal());
        }
        assertNull(session.wrong());
        tampering.with(company, group);
        String wrong = session.wrong();
        assertNotNull(wrong, name);
        assertTrue(wrong.startsWith("group 1: ") && wrong.contains(reason), wrong);
    }
}
