package tare.business.store;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/** The company: all that it sells, all its customers, and its data groups. */
public final class Company {
    /** Where a customer is. */
    public record CustomerKey(int group, int district, int customer) {}

    /** Whom a name may mean. */
    public record NameKey(int group, int district, String last) {}

    private final Map<Integer, Item> items = new HashMap<>(Sizes.ITEMS * 2);
    private final Map<CustomerKey, Customer> customers = new HashMap<>();
    private final Map<NameKey, TreeMap<String, Customer>> customersByLastName = new HashMap<>();
    private final List<Group> groups = new ArrayList<>();

    /** A company with items, and no group yet. The same seed makes the same company. */
    public Company(long seed) {
        Dice dice = new Dice(seed, 0);
        for (int id = 1; id <= Sizes.ITEMS; id++) {
            items.put(id, Item.made(id, dice));
        }
    }

    /** Adds a customer of a group. */
    void add(int group, Customer customer) {
        customers.put(new CustomerKey(group, customer.district, customer.id), customer);
        customersByLastName
                .computeIfAbsent(new NameKey(group, customer.district, customer.last), key -> new TreeMap<>())
                .put(customer.first + customer.id, customer);
    }

    /** Adds a group. */
    void add(Group group) {
        groups.add(group);
    }

    /** The item with that number; `null` where there is none. */
    public Item item(int id) {
        return items.get(id);
    }

    /** A customer by number. */
    public Customer customer(int group, int district, int customer) {
        return customers.get(new CustomerKey(group, district, customer));
    }

    /** The customer in the middle of all that have this last name in a district, by first name. */
    public Customer customer(int group, int district, String last) {
        TreeMap<String, Customer> bearers = customersByLastName.get(new NameKey(group, district, last));
        int skip = bearers.size() / 2;
        for (Customer customer : bearers.values()) {
            if (skip-- == 0) {
                return customer;
            }
        }
        throw new IllegalStateException("nobody is called " + last);
    }

    /** The data groups. */
    public List<Group> groups() {
        return groups;
    }
}
