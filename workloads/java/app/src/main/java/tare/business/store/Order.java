package tare.business.store;

import java.math.BigDecimal;
import java.util.ArrayList;
import java.util.List;

/** An order of a customer. */
public final class Order {
    /** Its number in the district. */
    public final int id;
    /** The district's number. */
    public final int district;
    /** The customer's number in the district. */
    public final int customer;
    /** When it was placed. */
    public final long date;
    private final BigDecimal rate;
    /** Its lines. */
    public final List<OrderLine> lines;
    private BigDecimal total;
    private int carrier;

    /**
     * An order without lines yet.
     *
     * @param rate what the sum of its lines is multiplied with: less the discount, with taxes
     */
    public Order(int id, int district, int customer, long date, BigDecimal rate, int lines) {
        this.id = id;
        this.district = district;
        this.customer = customer;
        this.date = date;
        this.rate = rate;
        this.lines = new ArrayList<>(lines);
        total = Money.ZERO;
    }

    /** Adds a line. */
    public void add(OrderLine line) {
        lines.add(line);
    }

    /** Works out what is to be paid, when all lines are there. */
    public void close() {
        total = reckoned();
    }

    private BigDecimal reckoned() {
        BigDecimal sum = Money.ZERO;
        for (OrderLine line : lines) {
            sum = sum.add(line.amount);
        }
        return Money.rounded(sum.multiply(rate));
    }

    /** Gives all lines to a carrier. */
    public void deliver(int carrier, long date) {
        this.carrier = carrier;
        for (OrderLine line : lines) {
            line.deliver(date);
        }
    }

    /** What is to be paid. */
    public BigDecimal total() {
        return total;
    }

    /** Who delivered it; 0: nobody yet. */
    public int carrier() {
        return carrier;
    }

    /** Whether it was delivered. */
    public boolean isDelivered() {
        return carrier != 0;
    }

    /** Pieces of all lines. */
    public int pieces() {
        int pieces = 0;
        for (OrderLine line : lines) {
            pieces += line.quantity;
        }
        return pieces;
    }

    /** Whether its total is that of its lines, and they were all delivered or none. */
    boolean isRight() {
        boolean consistent = true;
        for (OrderLine line : lines) {
            consistent &= (line.delivered() != 0) == isDelivered();
        }
        return consistent && total.equals(reckoned());
    }

    /** For tests of the verification: another total. */
    void tamper(BigDecimal total) {
        this.total = total;
    }
}
