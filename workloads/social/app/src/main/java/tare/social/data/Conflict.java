package tare.social.data;

/** What was to be written is there already. */
public final class Conflict extends Exception {
    private static final long serialVersionUID = 1;

    /** As PostgreSQL names it. */
    static final String UNIQUE_VIOLATION = "23505";

    Conflict() {
        super("it is there already", null, false, false);
    }
}
