package tare.business.logic;

import java.math.BigDecimal;
import tare.business.store.Books;
import tare.business.store.Money;
import tare.business.store.Order;

/** What the clients of a group got as answers, in whole cents and apart from the store's own sums. */
public final class Ledger {
    private final Books opening;
    private long payments;
    private long paidCents;
    private long orders;
    private long orderedCents;
    private long pieces;
    private long deliveries;
    private long deliveredCents;

    /** A ledger from these books on. */
    public Ledger(Books opening) {
        this.opening = opening;
    }

    void paid(BigDecimal amount) {
        payments++;
        paidCents += Money.toCents(amount);
    }

    void ordered(Order order) {
        orders++;
        orderedCents += Money.toCents(order.total());
        pieces += order.pieces();
    }

    void delivered(Order order) {
        deliveries++;
        deliveredCents += Money.toCents(order.total());
    }

    /** What the store's books must say now. */
    public Books expected() {
        return new Books(opening.payments() + payments, opening.paidCents() + paidCents, opening.orders() + orders,
                opening.orderedCents() + orderedCents, opening.pieces() + pieces, opening.deliveries() + deliveries,
                opening.deliveredCents() + deliveredCents);
    }

    /** For tests of the verification: an order that was never placed. */
    void tamper() {
        orders++;
    }
}
