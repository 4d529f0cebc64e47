package tare.business.store;

import java.math.BigDecimal;

/** What the company sells. */
public record Item(int id, String name, BigDecimal price, String brand) {
    static Item made(int id, Dice dice) {
        return new Item(id, dice.text(14, 24), Money.cents(dice.between(100, 10_000)), dice.text(26, 50));
    }
}
