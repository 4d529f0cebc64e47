package tare.business.logic;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import org.junit.jupiter.api.Test;
import tare.business.store.Dice;

class DeckTest {
    private static List<Kind> dealt(Deck deck) {
        List<Kind> cards = new ArrayList<>();
        for (int i = 0; i < 33; i++) {
            cards.add(deck.deal());
        }
        return cards;
    }

    @Test
    void everyDeckHasTheSameCardsInAnotherOrder() {
        Deck deck = new Deck(new Dice(1, 2));
        List<Kind> before = null;
        for (int i = 0; i < 100; i++) {
            List<Kind> cards = dealt(deck);
            assertEquals(10, Collections.frequency(cards, Kind.NEW_ORDER));
            assertEquals(10, Collections.frequency(cards, Kind.PAYMENT));
            assertEquals(10, Collections.frequency(cards, Kind.CUSTOMER_REPORT));
            assertEquals(1, Collections.frequency(cards, Kind.ORDER_STATUS));
            assertEquals(1, Collections.frequency(cards, Kind.DELIVERY));
            assertEquals(1, Collections.frequency(cards, Kind.STOCK_LEVEL));
            assertNotEquals(before, cards);
            before = cards;
        }
    }

    @Test
    void theSameSeedDealsTheSameCards() {
        Deck one = new Deck(new Dice(7, 1));
        Deck same = new Deck(new Dice(7, 1));
        assertEquals(dealt(one), dealt(same));
        assertNotEquals(dealt(one), dealt(new Deck(new Dice(8, 1))));
    }
}
