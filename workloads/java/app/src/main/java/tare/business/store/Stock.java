package tare.business.store;

/** How many of an item a group has. */
public final class Stock {
    /** Below that many after a sale, the stock is replenished. */
    private static final int LEAST = 10;
    /** Pieces that a replenishment adds. */
    private static final int LOT = 91;

    /** What is stocked. */
    public final Item item;
    private final int initial;
    private final String[] districtNotes;
    private final String notes;
    private int quantity;
    private long sold;
    private long replenished;
    private int orders;

    Stock(Item item, Dice dice) {
        this.item = item;
        initial = dice.between(LEAST, 100);
        quantity = initial;
        districtNotes = new String[Sizes.DISTRICTS];
        for (int i = 0; i < districtNotes.length; i++) {
            districtNotes[i] = dice.text(24, 24);
        }
        notes = dice.text(26, 50);
    }

    /** Takes so many, and orders more where few are left. */
    public void sell(int pieces) {
        quantity -= pieces;
        sold += pieces;
        orders++;
        if (quantity < LEAST) {
            quantity += LOT;
            replenished += LOT;
        }
    }

    /** Pieces there. */
    public int quantity() {
        return quantity;
    }

    /** Pieces sold in all. */
    public long sold() {
        return sold;
    }

    /** What goes with the item to a district. */
    public String districtNotes(int district) {
        return districtNotes[district - 1];
    }

    /** Whether the notes on stock and item name the same brand first: the log calls such lines original. */
    public boolean isOriginal() {
        return notes.charAt(0) == item.brand().charAt(0);
    }

    /** Whether what is there is what was there, and came, and did not go. */
    boolean isRight() {
        return quantity == initial + replenished - sold && quantity >= LEAST && orders >= 0;
    }

    /** For tests of the verification: pieces that nobody booked. */
    void tamper(int pieces) {
        quantity += pieces;
    }
}
