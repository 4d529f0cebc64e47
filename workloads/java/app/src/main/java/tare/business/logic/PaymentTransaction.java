package tare.business.logic;

import java.math.BigDecimal;
import org.w3c.dom.Element;
import tare.business.store.Customer;
import tare.business.store.District;
import tare.business.store.Money;

/** Payment: a customer pays, which the group, the district, the customer and the history book. */
final class PaymentTransaction {
    private PaymentTransaction() {}

    static void perform(Session session) {
        District district = session.anyDistrict();
        Customer customer = session.anyCustomer(district);
        BigDecimal amount = Money.cents(session.dice.between(100, 500_000));
        String text = session.group.name + "    " + district.name;
        session.group.pay(district, customer, session.date(), amount, text);
        if (!customer.hasGoodCredit()) {
            String sum = amount.toPlainString();
            customer.note(customer.id + " " + district.id + " " + sum + " " + session.date() + " ");
        }
        session.ledger.paid(amount);
        TransactionLog log = session.log;
        Element payment = log.element("payment");
        log.put(payment, "amount", amount);
        log.put(payment, "district", district.name);
        log.put(payment, "year-to-date", district.yearToDate());
        who(log, customer);
    }

    /** Writes who a customer is. */
    static Element who(TransactionLog log, Customer customer) {
        Element element = log.element("customer");
        log.put(element, "number", customer.id);
        log.put(element, "first", customer.first);
        log.put(element, "last", customer.last);
        for (String part : customer.address) {
            log.put(element, "address", part);
        }
        log.put(element, "phone", customer.phone);
        log.put(element, "balance", customer.balance());
        log.put(element, "limit", customer.creditLimit);
        log.put(element, "discount", customer.discount);
        if (!customer.hasGoodCredit()) {
            log.put(element, "notes", customer.notes());
        }
        return element;
    }
}
