package tare.social.data;

/** The database did not do its part; the message says what happened. */
public final class Unavailable extends Exception {
    /** What happened. */
    public Unavailable(String why) {
        // Its origin is no riddle: no stack is taken, which would be most of the cost when all requests fail.
        super(why, null, false, false);
    }
}
