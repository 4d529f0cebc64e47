package tare.business.store;

import java.math.BigDecimal;
import java.util.HashMap;
import java.util.Map;
import java.util.TreeMap;

/** A data group: what one thread works on. */
public final class Group {
    /** Its number, from 1. */
    public final int id;
    /** Its name. */
    public final String name;
    /** Its tax, a share. */
    public final BigDecimal tax;
    /** Stock by the item's number. */
    public final Map<Integer, Stock> stock = new HashMap<>(Sizes.ITEMS * 2);
    private final District[] districts = new District[Sizes.DISTRICTS];
    /** Payments by number. */
    public final TreeMap<Long, History> history = new TreeMap<>();
    private BigDecimal yearToDate = Money.ZERO;
    private long payments;
    private long retiredPayments;
    private BigDecimal retiredHistory = Money.ZERO;

    Group(int id, Dice dice) {
        this.id = id;
        name = dice.text(6, 10);
        tax = BigDecimal.valueOf(dice.between(0, 2000), 4);
        for (int i = 0; i < districts.length; i++) {
            districts[i] = new District(i + 1, dice);
        }
    }

    /** Books a payment, and retires the oldest entry of the history where there are too many. */
    public void pay(District district, Customer customer, long date, BigDecimal amount, String text) {
        yearToDate = yearToDate.add(amount);
        district.pay(amount);
        customer.pay(amount);
        payments++;
        history.put(payments, new History(payments, district.id, customer.id, date, amount, text));
        if (history.size() > Sizes.HISTORY) {
            History oldest = history.pollFirstEntry().getValue();
            retiredPayments++;
            retiredHistory = retiredHistory.add(oldest.amount());
        }
    }

    /** The district with that number, from 1. */
    public District district(int number) {
        return districts[number - 1];
    }

    /** All payments. */
    public BigDecimal yearToDate() {
        return yearToDate;
    }

    /** How many payments there were. */
    public long payments() {
        return payments;
    }

    /** Payments retired from the history. */
    long retiredPayments() {
        return retiredPayments;
    }

    /** What they sum up to. */
    BigDecimal retiredHistory() {
        return retiredHistory;
    }

    /** For tests of the verification: amounts that nobody paid. */
    void tamper(BigDecimal payments, BigDecimal retired) {
        yearToDate = yearToDate.add(payments);
        retiredHistory = retiredHistory.add(retired);
    }
}
