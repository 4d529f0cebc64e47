package tare.business.store;

import java.math.BigDecimal;

/** A line of an order. */
public final class OrderLine {
    private final int item;
    private final int quantity;
    private final BigDecimal amount;
    private final String notes;
    private long delivered;

    /** A line of so many pieces for that much. */
    public OrderLine(int item, int quantity, BigDecimal amount, String notes) {
        this.item = item;
        this.quantity = quantity;
        this.amount = amount;
        this.notes = notes;
    }

    /** The item's number. */
    public int item() {
        return item;
    }

    /** Pieces. */
    public int quantity() {
        return quantity;
    }

    /** Price of all pieces. */
    public BigDecimal amount() {
        return amount;
    }

    /** What goes with the item to the district. */
    public String notes() {
        return notes;
    }

    /** When it was delivered; 0: not yet. */
    public long delivered() {
        return delivered;
    }

    void deliver(long date) {
        delivered = date;
    }
}
