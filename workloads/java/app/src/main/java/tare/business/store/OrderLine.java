package tare.business.store;

import java.math.BigDecimal;

/** A line of an order. */
public final class OrderLine {
    /** The item's number. */
    public final int item;
    /** Pieces. */
    public final int quantity;
    /** Price of all pieces. */
    public final BigDecimal amount;
    /** What goes with the item to the district. */
    public final String notes;
    private long delivered;

    /** A line of so many pieces for that much. */
    public OrderLine(int item, int quantity, BigDecimal amount, String notes) {
        this.item = item;
        this.quantity = quantity;
        this.amount = amount;
        this.notes = notes;
    }

    /** When it was delivered; 0: not yet. */
    public long delivered() {
        return delivered;
    }

    void deliver(long date) {
        delivered = date;
    }
}
