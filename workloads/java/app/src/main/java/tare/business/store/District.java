package tare.business.store;

import java.math.BigDecimal;
import java.util.TreeMap;

/** A district of a group, with its orders. */
public final class District {
    /** Its number in the group. */
    public final int id;
    /** Its name. */
    public final String name;
    /** Its tax, a share. */
    public final BigDecimal tax;
    /** Orders that it keeps, by number. */
    public final TreeMap<Integer, Order> orders = new TreeMap<>();
    /** Orders that wait, by number. */
    public final TreeMap<Integer, NewOrder> newOrders = new TreeMap<>();
    private BigDecimal yearToDate = Money.ZERO;
    private int nextOrder = 1;
    private long delivered;
    private long retiredOrders;
    private long retiredPieces;
    private BigDecimal retiredTotal = Money.ZERO;

    District(int id, Dice dice) {
        this.id = id;
        name = dice.text(6, 10);
        tax = BigDecimal.valueOf(dice.between(0, 2000), 4);
    }

    /** The number of the next order. */
    public int takeNumber() {
        return nextOrder++;
    }

    /** Places an order, which then waits for its delivery, and retires the oldest where there are too many. */
    public void place(Order order) {
        orders.put(order.id, order);
        newOrders.put(order.id, new NewOrder(order.id, id));
        // Deliveries go by age, so an oldest order that waits is one of few that all wait.
        while (orders.size() > Sizes.ORDERS && orders.firstEntry().getValue().isDelivered()) {
            Order oldest = orders.pollFirstEntry().getValue();
            retiredOrders++;
            retiredPieces += oldest.pieces();
            retiredTotal = retiredTotal.add(oldest.total());
        }
    }

    /** The order that waits longest, which then waits no more; `null` where none does. */
    public Order takeWaiting() {
        var oldest = newOrders.pollFirstEntry();
        if (oldest == null) {
            return null;
        }
        delivered++;
        return orders.get(oldest.getKey());
    }

    /** Books a payment. */
    public void pay(BigDecimal amount) {
        yearToDate = yearToDate.add(amount);
    }

    /** All payments. */
    public BigDecimal yearToDate() {
        return yearToDate;
    }

    /** Orders delivered. */
    public long delivered() {
        return delivered;
    }

    /** Orders that were placed, those retired included. */
    public long placed() {
        return orders.size() + retiredOrders;
    }

    /** The number that the next order will have. */
    int nextOrder() {
        return nextOrder;
    }

    /** Pieces of the orders retired. */
    long retiredPieces() {
        return retiredPieces;
    }

    /** Totals of the orders retired. */
    BigDecimal retiredTotal() {
        return retiredTotal;
    }

    /** For tests of the verification: a number that no order has, an amount that nobody paid or ordered. */
    void tamper(int numbers, BigDecimal payments, BigDecimal orders) {
        nextOrder += numbers;
        yearToDate = yearToDate.add(payments);
        retiredTotal = retiredTotal.add(orders);
    }
}
