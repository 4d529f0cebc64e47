package tare.business.logic;

import tare.business.store.Books;
import tare.business.store.Company;
import tare.business.store.Customer;
import tare.business.store.Dice;
import tare.business.store.District;
import tare.business.store.Group;
import tare.business.store.Sizes;
import tare.business.store.Verification;

/** A client of a group: deals cards, and has the logic do what they say. Used by one thread at a time. */
public final class Session {
    /** Dates go on from here, a second a transaction, so that the same seed does the same. */
    private static final long OPENED = 1_100_000_000L;

    final Company company;
    final Group group;
    final Dice dice;
    private final Deck deck;
    /** The log of all transactions. */
    public final TransactionLog log = new TransactionLog();
    final Ledger ledger;
    private long date = OPENED;

    /** A client of a group; the same seed deals the same cards. */
    public Session(Company company, Group group, long seed) {
        this.company = company;
        this.group = group;
        // Streams of the groups' own data are small numbers.
        dice = new Dice(seed, 1_000_000L + group.id);
        deck = new Deck(dice);
        ledger = new Ledger(Books.of(company, group));
    }

    /** What comes next. */
    public Kind deal() {
        return deck.deal();
    }

    /** Does a transaction. */
    public void perform(Kind kind) {
        date++;
        log.begin(kind, group.id, date);
        switch (kind) {
            case NEW_ORDER -> NewOrderTransaction.perform(this);
            case PAYMENT -> PaymentTransaction.perform(this);
            case CUSTOMER_REPORT -> CustomerReportTransaction.perform(this);
            case ORDER_STATUS -> OrderStatusTransaction.perform(this);
            case DELIVERY -> DeliveryTransaction.perform(this);
            case STOCK_LEVEL -> StockLevelTransaction.perform(this);
        }
        log.end();
    }

    /** What does not add up; `null` where everything does. */
    public String wrong() {
        return Verification.of(company, group, ledger.expected());
    }

    long date() {
        return date;
    }

    District anyDistrict() {
        return group.district(dice.between(1, Sizes.DISTRICTS));
    }

    /** Six in ten customers give their name, the others their number. */
    Customer anyCustomer(District district) {
        if (dice.percent(60)) {
            String last = Dice.lastName(dice.uneven(Sizes.LAST_NAMES) - 1);
            return company.customer(group.id, district.id, last);
        }
        return company.customer(group.id, district.id, dice.uneven(Sizes.CUSTOMERS));
    }
}
