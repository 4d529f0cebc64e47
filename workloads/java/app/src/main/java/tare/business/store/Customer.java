package tare.business.store;

import java.math.BigDecimal;

/** Somebody who orders and pays. */
public final class Customer {
    /** The customer's number in the district. */
    public final int id;
    /** The district's number. */
    public final int district;
    /** First name. */
    public final String first;
    /** Last name. */
    public final String last;
    /** Streets, city, state and code. */
    public final String[] address;
    /** Telephone. */
    public final String phone;
    private final boolean goodCredit;
    /** How much may be owed. */
    public final BigDecimal creditLimit;
    /** Share taken off an order. */
    public final BigDecimal discount;
    private BigDecimal balance = Money.ZERO;
    private BigDecimal paid = Money.ZERO;
    private BigDecimal received = Money.ZERO;
    private int payments;
    private int deliveries;
    private int lastOrder;
    private String notes;

    Customer(int id, int district, Dice dice) {
        this.id = id;
        this.district = district;
        first = dice.text(8, 16);
        // The first ones have every name once, so that none is without a bearer.
        last = Dice.lastName(id <= Sizes.LAST_NAMES ? id - 1 : dice.below(Sizes.LAST_NAMES));
        address = new String[] {
            dice.text(10, 20), dice.text(10, 20), dice.text(10, 20), dice.text(2, 2), dice.text(9, 9)
        };
        phone = dice.text(16, 16);
        goodCredit = !dice.percent(10);
        creditLimit = Money.cents(5_000_000);
        discount = BigDecimal.valueOf(dice.between(0, 5000), 4);
        notes = dice.text(Sizes.NOTES * 3 / 5, Sizes.NOTES);
    }

    /** Books a payment. */
    public void pay(BigDecimal amount) {
        balance = balance.subtract(amount);
        paid = paid.add(amount);
        payments++;
    }

    /** Books the delivery of an order. */
    public void receive(Order order) {
        balance = balance.add(order.total());
        received = received.add(order.total());
        deliveries++;
    }

    /** Notes that an order was placed. */
    public void ordered(int order) {
        lastOrder = order;
    }

    /** Writes before all other notes; the oldest fall off. */
    public void note(String text) {
        String all = text + notes;
        notes = all.length() <= Sizes.NOTES ? all : all.substring(0, Sizes.NOTES);
    }

    /** Whether payments need no note. */
    public boolean hasGoodCredit() {
        return goodCredit;
    }

    /** What is owed. */
    public BigDecimal balance() {
        return balance;
    }

    /** All payments. */
    public BigDecimal paid() {
        return paid;
    }

    /** Totals of all orders delivered. */
    public BigDecimal received() {
        return received;
    }

    /** How many payments. */
    public int payments() {
        return payments;
    }

    /** How many orders delivered. */
    public int deliveries() {
        return deliveries;
    }

    /** The number of the order placed last; 0: none. */
    public int lastOrder() {
        return lastOrder;
    }

    /** Notes. */
    public String notes() {
        return notes;
    }

    /** Whether what is owed is what was received and not paid. */
    boolean isRight() {
        return balance.equals(received.subtract(paid));
    }

    /** For tests of the verification: a balance that nobody booked. */
    void tamper(BigDecimal amount) {
        balance = balance.add(amount);
    }
}
