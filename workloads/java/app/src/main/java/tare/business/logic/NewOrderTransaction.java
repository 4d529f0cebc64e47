package tare.business.logic;

import java.math.BigDecimal;
import org.w3c.dom.Element;
import tare.business.store.Customer;
import tare.business.store.Dice;
import tare.business.store.District;
import tare.business.store.Item;
import tare.business.store.Loader;
import tare.business.store.Order;
import tare.business.store.OrderLine;
import tare.business.store.Sizes;
import tare.business.store.Stock;

/** New Order: a customer orders 5 to 15 items. One in a hundred names an item that is not sold, and is refused. */
final class NewOrderTransaction {
    private NewOrderTransaction() {}

    static void perform(Session session) {
        Dice dice = session.dice;
        District district = session.anyDistrict();
        int number = dice.uneven(Sizes.CUSTOMERS);
        Customer customer = session.company.customer(session.group.id, district.id, number);
        int[] items = new int[dice.between(Sizes.FEWEST_LINES, Sizes.MOST_LINES)];
        for (int i = 0; i < items.length; i++) {
            items[i] = dice.uneven(Sizes.ITEMS);
        }
        if (dice.percent(1)) {
            items[items.length - 1] = Sizes.ITEMS + 1;
        }
        TransactionLog log = session.log;
        Element head = log.element("order");
        log.put(head, "district", district.name);
        PaymentTransaction.who(log, customer);
        // Looked up before anything is changed, so that nothing need be undone.
        for (int item : items) {
            if (session.company.item(item) == null) {
                log.put(head, "refused", item);
                return;
            }
        }
        BigDecimal rate = Loader.rate(session.group, district, customer);
        Order order = new Order(district.takeNumber(), district.id, number, session.date(), rate, items.length);
        for (int item : items) {
            order.add(line(session, district, item));
        }
        order.close();
        district.place(order);
        customer.ordered(order.id);
        log.put(head, "number", order.id);
        log.put(head, "total", order.total());
        session.ledger.ordered(order);
    }

    private static OrderLine line(Session session, District district, int number) {
        Item item = session.company.item(number);
        Stock stock = session.group.stock.get(number);
        int pieces = session.dice.between(1, 10);
        stock.sell(pieces);
        BigDecimal amount = item.price().multiply(BigDecimal.valueOf(pieces));
        TransactionLog log = session.log;
        Element line = log.element("line");
        log.put(line, "item", item.name());
        log.put(line, "pieces", pieces);
        log.put(line, "left", stock.quantity());
        log.put(line, "brand", stock.isOriginal() ? "original" : "generic");
        log.put(line, "notes", stock.districtNotes(district.id));
        log.put(line, "price", item.price());
        log.put(line, "amount", amount);
        return new OrderLine(number, pieces, amount, stock.districtNotes(district.id));
    }
}
