package tare.social;

/** A request that is not done for what it asks. */
final class Refused extends Exception {
    private static final long serialVersionUID = 1;

    private final int status;

    /**
     * What is told.
     *
     * @param status of HTTP
     */
    Refused(int status, String why) {
        // It is told to the user, and its origin is no riddle: no stack is taken.
        super(why, null, false, false);
        this.status = status;
    }

    int status() {
        return status;
    }
}
