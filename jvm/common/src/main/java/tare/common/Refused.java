package tare.common;

/** A request that is not carried out because of what it asks for. */
public final class Refused extends Exception {
    private static final int BAD_REQUEST = 400;

    private final int status;

    /**
     * The message is for the user.
     *
     * @param status of HTTP
     */
    public Refused(int status, String why) {
        // Its origin is clear, and a stack would be most of its cost.
        super(why, null, false, false);
        this.status = status;
    }

    /** A request that does not say what is needed, or not in the right form. */
    public static Refused badRequest(String why) {
        return new Refused(BAD_REQUEST, why);
    }

    /** The status of HTTP. */
    public int status() {
        return status;
    }
}
