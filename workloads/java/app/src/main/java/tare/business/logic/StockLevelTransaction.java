package tare.business.logic;

import java.util.HashSet;
import java.util.Set;
import tare.business.store.District;
import tare.business.store.Order;
import tare.business.store.OrderLine;

/** Stock Level: how many items of the last orders of a district run short. */
final class StockLevelTransaction {
    /** Orders that are looked at, from the newest. */
    private static final int ORDERS = 20;

    private StockLevelTransaction() {}

    static void perform(Session session) {
        District district = session.anyDistrict();
        int threshold = session.dice.between(15, 40);
        Set<Integer> items = new HashSet<>();
        int left = ORDERS;
        for (Order order : district.orders.descendingMap().values()) {
            for (OrderLine line : order.lines) {
                items.add(line.item);
            }
            if (--left == 0) {
                break;
            }
        }
        int few = 0;
        TransactionLog log = session.log;
        for (int item : items) {
            int quantity = session.group.stock.get(item).quantity();
            if (quantity < threshold) {
                few++;
                log.put(log.root(), "short", item);
            }
        }
        log.put(log.root(), "threshold", threshold);
        log.put(log.root(), "few", few);
    }
}
