package tare.business.logic;

/** A kind of transaction. */
public enum Kind {
    /** Places an order. */
    NEW_ORDER("new-order", 10),
    /** Takes a payment. */
    PAYMENT("payment", 10),
    /** Reports what a customer ordered and paid. */
    CUSTOMER_REPORT("customer-report", 10),
    /** Reports how a customer's last order stands. */
    ORDER_STATUS("order-status", 1),
    /** Delivers orders that wait, in all districts. */
    DELIVERY("delivery", 1),
    /** Counts what runs short in a district. */
    STOCK_LEVEL("stock-level", 1);

    private final String id;
    private final int cards;

    Kind(String id, int cards) {
        this.id = id;
        this.cards = cards;
    }

    /** Its name in the protocol. */
    public String id() {
        return id;
    }

    /** Cards of this kind in a deck. */
    public int cards() {
        return cards;
    }
}
