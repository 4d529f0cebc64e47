package tare.social.data;

/** The database did not do its part; the message says what happened. */
public final class Unavailable extends Exception {
    /** What happened. */
    public Unavailable(String why) {
        // Its origin is clear, and a stack would be most of its cost where all requests fail.
        super(why, null, false, false);
    }
}
