package tare.social;

/** A request that is not done for what it asks. */
final class Refused extends Exception {
    private static final long serialVersionUID = 1;

    private final int status;

    /**
     * What the user is shown.
     *
     * @param status of HTTP
     */
    Refused(int status, String why) {
        // The user is shown the reason, and its origin is clear: no stack is taken.
        super(why, null, false, false);
        this.status = status;
    }

    int status() {
        return status;
    }
}
