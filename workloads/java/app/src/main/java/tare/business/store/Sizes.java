package tare.business.store;

/** How much a company and a data group hold: chosen so that a group is about 25 MB of live objects. */
public final class Sizes {
    /** Items of the company; each group has a stock of each. */
    public static final int ITEMS = 14_000;
    /** Districts of a group. */
    public static final int DISTRICTS = 10;
    /** Customers of a district. */
    public static final int CUSTOMERS = 300;
    /** Orders that a district keeps; older ones are retired. */
    public static final int ORDERS = 400;
    /** New orders that wait in a district after loading, and at least after a delivery. */
    public static final int WAITING = 20;
    /** Orders that one delivery takes from a district at most. */
    public static final int DELIVERED_AT_ONCE = 4;
    /** Entries of history that a group keeps; older ones are retired. */
    public static final int HISTORY = 12_000;
    /** Lines of an order. */
    public static final int FEWEST_LINES = 5;
    /** See {@link #FEWEST_LINES}. */
    public static final int MOST_LINES = 15;
    /** Longest notes on a customer, characters. */
    public static final int NOTES = 300;
    /** Different last names. */
    public static final int LAST_NAMES = 100;

    private Sizes() {}
}
