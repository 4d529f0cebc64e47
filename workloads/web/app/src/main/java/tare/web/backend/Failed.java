package tare.web.backend;

/** A query that has no answer; the message says why. */
public final class Failed extends Exception {
    private static final long serialVersionUID = 1;

    Failed(String why) {
        // The user is shown the reason, and its origin is clear: no stack is taken, which would be most of the cost.
        super(why, null, false, false);
    }
}
