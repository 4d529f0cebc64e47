package tare.business.logic;

import org.w3c.dom.Element;
import tare.business.store.Customer;
import tare.business.store.District;
import tare.business.store.Order;
import tare.business.store.OrderLine;

/** Order Status: how the order stands that a customer placed last. */
final class OrderStatusTransaction {
    private OrderStatusTransaction() {}

    static void perform(Session session) {
        District district = session.anyDistrict();
        Customer customer = session.anyCustomer(district);
        TransactionLog log = session.log;
        PaymentTransaction.who(log, customer);
        Order order = district.orders.get(customer.lastOrder());
        Element element = log.element("order");
        log.put(element, "number", customer.lastOrder());
        if (order == null) {
            log.put(element, "state", "retired");
            return;
        }
        log.put(element, "date", TransactionLog.date(order.date));
        log.put(element, "carrier", order.carrier());
        for (OrderLine line : order.lines) {
            Element inner = log.element(element, "line");
            log.put(inner, "item", line.item);
            log.put(inner, "pieces", line.quantity);
            log.put(inner, "amount", line.amount);
            log.put(inner, "notes", line.notes);
            log.put(inner, "delivered", TransactionLog.date(line.delivered()));
        }
    }
}
