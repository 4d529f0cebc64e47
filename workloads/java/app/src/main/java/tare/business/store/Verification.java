package tare.business.store;

import java.math.BigDecimal;

/** Whether the money, the stock and the orders of a group add up. */
public final class Verification {
    private final Company company;
    private final Group group;

    private Verification(Company company, Group group) {
        this.company = company;
        this.group = group;
    }

    /**
     * What does not add up; `null` where everything does.
     *
     * @param expected what the books must say: those at the start and what clients got as answers since
     */
    public static String of(Company company, Group group, Books expected) {
        Verification verification = new Verification(company, group);
        String wrong = verification.compared(expected);
        for (int number = 1; wrong == null && number <= Sizes.DISTRICTS; number++) {
            wrong = verification.district(group.district(number));
        }
        if (wrong == null) {
            wrong = verification.payments();
        }
        if (wrong == null) {
            wrong = verification.stock();
        }
        return wrong == null ? null : "group " + group.id + ": " + wrong;
    }

    private String compared(Books expected) {
        Books books = Books.of(company, group);
        if (books.payments() != expected.payments() || books.paidCents() != expected.paidCents()) {
            return differs("payments of the history", books.payments(), books.paidCents(), expected.payments(),
                    expected.paidCents());
        }
        if (books.orders() != expected.orders() || books.orderedCents() != expected.orderedCents()) {
            return differs("orders", books.orders(), books.orderedCents(), expected.orders(), expected.orderedCents());
        }
        if (books.deliveries() != expected.deliveries() || books.deliveredCents() != expected.deliveredCents()) {
            return differs("deliveries", books.deliveries(), books.deliveredCents(), expected.deliveries(),
                    expected.deliveredCents());
        }
        if (books.pieces() != expected.pieces()) {
            return "stock says that " + books.pieces() + " pieces were sold, clients bought " + expected.pieces();
        }
        return null;
    }

    private static String differs(String what, long count, long cents, long expected, long expectedCents) {
        return what + " are " + count + " of " + Money.cents(cents).toPlainString() + " in all, clients counted "
                + expected + " of " + Money.cents(expectedCents).toPlainString();
    }

    /** Orders of a district by themselves, and those of its customers. */
    private String district(District district) {
        String where = "district " + district.id + ": ";
        if (district.placed() != district.nextOrder() - 1) {
            return where + district.placed() + " orders, and the next has the number " + district.nextOrder();
        }
        if (district.placed() != district.delivered() + district.newOrders.size()) {
            return where + district.placed() + " orders, but " + district.delivered() + " were delivered and "
                    + district.newOrders.size() + " wait";
        }
        for (Order order : district.orders.values()) {
            if (!order.isRight()) {
                return where + "order " + order.id + " is not the sum of its lines, or delivered in part";
            }
            if (order.isDelivered() == district.newOrders.containsKey(order.id)) {
                return where + "order " + order.id + " was delivered and waits, or neither";
            }
        }
        long deliveries = 0;
        for (int id = 1; id <= Sizes.CUSTOMERS; id++) {
            Customer customer = company.customer(group.id, district.id, id);
            if (!customer.isRight()) {
                return where + "customer " + id + " owes " + customer.balance().toPlainString()
                        + ", which is not what was received and not paid";
            }
            deliveries += customer.deliveries();
        }
        return deliveries == district.delivered() ? null
                : where + district.delivered() + " orders were delivered, its customers received " + deliveries;
    }

    /** Payments: of the group, its districts, its customers. */
    private String payments() {
        BigDecimal districts = Money.ZERO;
        for (int number = 1; number <= Sizes.DISTRICTS; number++) {
            District district = group.district(number);
            BigDecimal paid = Money.ZERO;
            for (int id = 1; id <= Sizes.CUSTOMERS; id++) {
                paid = paid.add(company.customer(group.id, number, id).paid());
            }
            if (!paid.equals(district.yearToDate())) {
                return "district " + number + " took " + district.yearToDate().toPlainString() + ", its customers paid "
                        + paid.toPlainString();
            }
            districts = districts.add(paid);
        }
        Books books = Books.of(company, group);
        boolean right = districts.equals(group.yearToDate()) && books.paidCents() == Money.toCents(group.yearToDate())
                && books.payments() == group.payments();
        return right ? null : "the group took " + group.yearToDate().toPlainString() + " in " + group.payments()
                + " payments, its districts took " + districts.toPlainString() + ", its history has "
                + Money.cents(books.paidCents()).toPlainString() + " in " + books.payments();
    }

    /** Stock of each item, and against the lines of all orders. */
    private String stock() {
        long sold = 0;
        for (Stock stock : group.stock.values()) {
            if (!stock.isRight()) {
                return "item " + stock.item.id() + ": " + stock.quantity()
                        + " are there, which is not what came and was not sold";
            }
            sold += stock.sold();
        }
        long ordered = 0;
        for (int number = 1; number <= Sizes.DISTRICTS; number++) {
            ordered += group.district(number).retiredPieces();
            for (Order order : group.district(number).orders.values()) {
                ordered += order.pieces();
            }
        }
        return sold == ordered ? null : sold + " pieces were sold, the lines of all orders have " + ordered;
    }
}
