package tare.business.store;

/**
 * Numbers by chance that are the same for the same seed, on any machine and in any release of Java (SplitMix64).
 */
public final class Dice {
    private static final String LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789 -";
    private static final String[] SYLLABLES = {
        "BAR", "OUGHT", "ABLE", "PRI", "PRES", "ESE", "ANTI", "CALLY", "ATION", "EING"
    };

    private long state;

    /** Another row of numbers for each seed and stream. */
    public Dice(long seed, long stream) {
        state = mix(seed * 0x9E3779B97F4A7C15L + mix(stream + 0x632BE59BD9B4E019L));
    }

    /** The next 64 bits. */
    public long next() {
        state += 0x9E3779B97F4A7C15L;
        return mix(state);
    }

    private static long mix(long value) {
        long mixed = (value ^ (value >>> 30)) * 0xBF58476D1CE4E5B9L;
        mixed = (mixed ^ (mixed >>> 27)) * 0x94D049BB133111EBL;
        return mixed ^ (mixed >>> 31);
    }

    /** From 0 to below `bound`. */
    public int below(int bound) {
        return (int) ((next() >>> 33) % bound);
    }

    /** From `low` to `high`, both included. */
    public int between(int low, int high) {
        return low + below(high - low + 1);
    }

    /** Some numbers more often than others, from 1 to `count`: the hot ones of a business. */
    public int uneven(int count) {
        int hot = Integer.highestOneBit(Math.max(count / 4, 1)) - 1;
        return (between(0, hot) | between(0, count - 1)) % count + 1;
    }

    /** From above 0 to 1. */
    public double share() {
        return ((next() >>> 11) + 1) * 0x1.0p-53;
    }

    /** True so many times in a hundred. */
    public boolean percent(int share) {
        return below(100) < share;
    }

    /** Letters and digits. */
    public String text(int shortest, int longest) {
        char[] letters = new char[between(shortest, longest)];
        for (int i = 0; i < letters.length; i++) {
            letters[i] = LETTERS.charAt((int) (next() >>> 58));
        }
        return new String(letters);
    }

    /** The last name with that number, below {@link Sizes#LAST_NAMES}. */
    public static String lastName(int number) {
        return SYLLABLES[number / 100 % 10] + SYLLABLES[number / 10 % 10] + SYLLABLES[number % 10];
    }
}
