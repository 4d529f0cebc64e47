package tare.business.store;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;

class LoaderTest {
    @Test
    void theSameSeedLoadsTheSameAndGroupsDiffer() {
        Company company = new Company(1);
        Group first = Loader.addGroup(company, 1);
        Group second = Loader.addGroup(company, 1);
        Company again = new Company(1);
        Group same = Loader.addGroup(again, 1);
        assertEquals(Books.of(company, first), Books.of(again, same));
        assertNotEquals(Books.of(company, first), Books.of(company, second));
        assertEquals(first.name, same.name);
        assertEquals(company.item(5), again.item(5));
        assertNotEquals(company.item(5), new Company(2).item(5));
    }

    @Test
    void everyNameHasABearerAndEveryCustomerAnOrder() {
        Company company = new Company(2);
        Group group = Loader.addGroup(company, 2);
        for (int district = 1; district <= Sizes.DISTRICTS; district++) {
            for (int name = 0; name < Sizes.LAST_NAMES; name++) {
                String last = Dice.lastName(name);
                assertEquals(last, company.customer(group.id, district, last).last);
            }
            for (int id = 1; id <= Sizes.CUSTOMERS; id++) {
                Customer customer = company.customer(group.id, district, id);
                assertNotNull(group.district(district).orders.get(customer.lastOrder()));
            }
        }
    }

    @Test
    void diceKeepToTheirBounds() {
        Dice dice = new Dice(1, 1);
        boolean[] seen = new boolean[300];
        for (int i = 0; i < 100_000; i++) {
            int between = dice.between(-2, 3);
            assertTrue(between >= -2 && between <= 3);
            seen[dice.uneven(300) - 1] = true;
            double share = dice.share();
            assertTrue(share > 0 && share <= 1);
            int length = dice.text(3, 5).length();
            assertTrue(length >= 3 && length <= 5);
        }
        for (int i = 0; i < seen.length; i++) {
            assertTrue(seen[i], "never " + (i + 1));
        }
    }
}
