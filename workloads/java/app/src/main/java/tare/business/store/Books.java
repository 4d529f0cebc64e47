package tare.business.store;

import java.math.BigDecimal;

/**
 * What a group holds, summed up from its objects.
 *
 * @param payments how many payments were booked
 * @param paidCents what they sum up to
 * @param orders how many orders were placed
 * @param orderedCents what they sum up to
 * @param pieces pieces sold
 * @param deliveries orders delivered
 * @param deliveredCents what they sum up to
 */
public record Books(
        long payments, long paidCents, long orders, long orderedCents, long pieces, long deliveries,
        long deliveredCents) {

    /** Sums up what the customers, the history, the stock and the orders of a group say. */
    public static Books of(Company company, Group group) {
        BigDecimal history = group.retiredHistory();
        for (History entry : group.history.values()) {
            history = history.add(entry.amount());
        }
        BigDecimal ordered = Money.ZERO;
        BigDecimal received = Money.ZERO;
        long orders = 0;
        long deliveries = 0;
        for (int number = 1; number <= Sizes.DISTRICTS; number++) {
            District district = group.district(number);
            orders += district.placed();
            ordered = ordered.add(district.retiredTotal());
            for (Order order : district.orders.values()) {
                ordered = ordered.add(order.total());
            }
            for (int id = 1; id <= Sizes.CUSTOMERS; id++) {
                Customer customer = company.customer(group.id, number, id);
                deliveries += customer.deliveries();
                received = received.add(customer.received());
            }
        }
        long sold = 0;
        for (Stock stock : group.stock.values()) {
            sold += stock.sold();
        }
        return new Books(group.history.size() + group.retiredPayments(), Money.toCents(history), orders,
                Money.toCents(ordered), sold, deliveries, Money.toCents(received));
    }
}
