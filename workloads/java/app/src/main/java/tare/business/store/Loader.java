package tare.business.store;

import java.math.BigDecimal;
import java.util.ArrayList;
import java.util.List;

/** Fills a company with groups, each as full of orders and history as it will ever be. */
public final class Loader {
    /** Dates of what is loaded: seconds before the first transaction. */
    private static final long LOADED = 1_000_000_000L;

    private Loader() {}

    /** Adds a group; the same seed and number make the same group. */
    public static Group addGroup(Company company, long seed) {
        int id = company.groups().size() + 1;
        Dice dice = new Dice(seed, id);
        Group group = new Group(id, dice);
        for (int item = 1; item <= Sizes.ITEMS; item++) {
            group.stock.put(item, new Stock(company.item(item), dice));
        }
        List<Customer> customers = new ArrayList<>();
        for (int district = 1; district <= Sizes.DISTRICTS; district++) {
            for (int customer = 1; customer <= Sizes.CUSTOMERS; customer++) {
                Customer made = new Customer(customer, district, dice);
                customers.add(made);
                company.add(id, made);
            }
        }
        company.add(group);
        for (int i = 0; i < Sizes.HISTORY; i++) {
            Customer customer = customers.get(dice.below(customers.size()));
            group.pay(group.district(customer.district), customer, LOADED, Money.cents(dice.between(100, 5000)),
                    dice.text(12, 24));
        }
        for (int district = 1; district <= Sizes.DISTRICTS; district++) {
            fill(company, group, group.district(district), dice);
        }
        return group;
    }

    private static void fill(Company company, Group group, District district, Dice dice) {
        for (int i = 1; i <= Sizes.ORDERS; i++) {
            // Every customer has an order.
            int number = i <= Sizes.CUSTOMERS ? i : dice.between(1, Sizes.CUSTOMERS);
            Customer customer = company.customer(group.id, district.id, number);
            int lines = dice.between(Sizes.FEWEST_LINES, Sizes.MOST_LINES);
            BigDecimal rate = rate(group, district, customer);
            Order order = new Order(district.takeNumber(), district.id, number, LOADED, rate, lines);
            for (int line = 0; line < lines; line++) {
                Stock stock = group.stock.get(dice.between(1, Sizes.ITEMS));
                int pieces = dice.between(1, 10);
                stock.sell(pieces);
                BigDecimal amount = stock.item.price().multiply(BigDecimal.valueOf(pieces));
                order.add(new OrderLine(stock.item.id(), pieces, amount, stock.districtNotes(district.id)));
            }
            order.close();
            customer.ordered(order.id);
            district.place(order);
            while (district.newOrders.size() > Sizes.WAITING) {
                Order waiting = district.takeWaiting();
                waiting.deliver(dice.between(1, 10), LOADED);
                company.customer(group.id, district.id, waiting.customer).receive(waiting);
            }
        }
    }

    /** What the sum of an order's lines is multiplied with: less the customer's discount, with both taxes. */
    public static BigDecimal rate(Group group, District district, Customer customer) {
        BigDecimal taxed = BigDecimal.ONE.add(group.tax).add(district.tax);
        return BigDecimal.ONE.subtract(customer.discount).multiply(taxed);
    }
}
