package tare.business.logic;

import java.math.BigDecimal;
import java.util.ArrayList;
import java.util.List;
import org.w3c.dom.Element;
import tare.business.store.Customer;
import tare.business.store.District;
import tare.business.store.History;
import tare.business.store.Money;
import tare.business.store.Order;
import tare.business.store.OrderLine;

/** Customer Report: what a customer paid and ordered of late, found by looking through history and orders. */
final class CustomerReportTransaction {
    /** Entries of the history that are looked through, from the newest. */
    private static final int LOOKED_THROUGH = 1_500;
    /** Entries that are listed, of payments and of orders. */
    private static final int LISTED = 5;

    private CustomerReportTransaction() {}

    static void perform(Session session) {
        District district = session.anyDistrict();
        Customer customer = session.anyCustomer(district);
        TransactionLog log = session.log;
        PaymentTransaction.who(log, customer);
        BigDecimal paid = Money.ZERO;
        for (History entry : payments(session, customer)) {
            Element element = log.element("payment");
            log.put(element, "date", TransactionLog.date(entry.date()));
            log.put(element, "text", entry.text());
            log.put(element, "amount", entry.amount());
            paid = paid.add(entry.amount());
        }
        log.put(log.root(), "paid", paid);
        BigDecimal ordered = Money.ZERO;
        for (Order order : orders(district, customer)) {
            Element element = log.element("order");
            log.put(element, "number", order.id);
            log.put(element, "state", order.isDelivered() ? "delivered" : "waits");
            log.put(element, "date", TransactionLog.date(order.date));
            for (OrderLine line : order.lines) {
                Element inner = log.element(element, "line");
                log.put(inner, "item", session.company.item(line.item).name());
                log.put(inner, "pieces", line.quantity);
                log.put(inner, "amount", line.amount);
            }
            log.put(element, "total", order.total());
            ordered = ordered.add(order.total());
        }
        log.put(log.root(), "ordered", ordered);
    }

    private static List<History> payments(Session session, Customer customer) {
        List<History> found = new ArrayList<>(LISTED);
        int left = LOOKED_THROUGH;
        for (History entry : session.group.history.descendingMap().values()) {
            if (entry.customer() == customer.id && entry.district() == customer.district) {
                found.add(entry);
            }
            left--;
            if (left == 0 || found.size() == LISTED) {
                break;
            }
        }
        return found;
    }

    private static List<Order> orders(District district, Customer customer) {
        List<Order> found = new ArrayList<>(LISTED);
        for (Order order : district.orders.descendingMap().values()) {
            if (order.customer == customer.id) {
                found.add(order);
                if (found.size() == LISTED) {
                    break;
                }
            }
        }
        return found;
    }
}
