package tare.business.logic;

import tare.business.store.Dice;

/** Cards that say which transaction comes next: shuffled, dealt to the last, shuffled again. */
public final class Deck {
    private final Dice dice;
    private final Kind[] cards;
    private int next;

    /** A full deck. */
    public Deck(Dice dice) {
        this.dice = dice;
        int size = 0;
        for (Kind kind : Kind.values()) {
            size += kind.cards();
        }
        cards = new Kind[size];
        int at = 0;
        for (Kind kind : Kind.values()) {
            for (int i = 0; i < kind.cards(); i++) {
                cards[at++] = kind;
            }
        }
        next = cards.length;
    }

    /** The next card. */
    public Kind deal() {
        if (next == cards.length) {
            shuffle();
            next = 0;
        }
        return cards[next++];
    }

    private void shuffle() {
        for (int i = cards.length - 1; i > 0; i--) {
            int other = dice.below(i + 1);
            Kind kind = cards[i];
            cards[i] = cards[other];
            cards[other] = kind;
        }
    }
}
