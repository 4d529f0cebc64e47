package tare.business.logic;

import org.w3c.dom.Element;
import tare.business.store.Customer;
import tare.business.store.District;
import tare.business.store.Order;
import tare.business.store.OrderLine;
import tare.business.store.Sizes;

/** Delivery: a carrier takes the orders that wait longest, in every district, and their customers owe them. */
final class DeliveryTransaction {
    private DeliveryTransaction() {}

    static void perform(Session session) {
        int carrier = session.dice.between(1, 10);
        TransactionLog log = session.log;
        log.put(log.root(), "carrier", carrier);
        for (int number = 1; number <= Sizes.DISTRICTS; number++) {
            District district = session.group.district(number);
            // More than one where more came in, so that what waits stays bounded.
            int most = Sizes.DELIVERED_AT_ONCE;
            for (int taken = 0; taken < most && district.newOrders.size() > Sizes.WAITING; taken++) {
                deliver(session, district, district.takeWaiting(), carrier);
            }
        }
    }

    private static void deliver(Session session, District district, Order order, int carrier) {
        order.deliver(carrier, session.date());
        Customer customer = session.company.customer(session.group.id, district.id, order.customer);
        customer.receive(order);
        session.ledger.delivered(order);
        TransactionLog log = session.log;
        Element element = log.element("delivered");
        log.put(element, "district", district.name);
        log.put(element, "order", order.id);
        log.put(element, "customer", customer.last);
        log.put(element, "total", order.total());
        log.put(element, "balance", customer.balance());
        for (OrderLine line : order.lines) {
            Element inner = log.element(element, "line");
            log.put(inner, "item", line.item);
            log.put(inner, "pieces", line.quantity);
            log.put(inner, "amount", line.amount);
        }
    }
}
