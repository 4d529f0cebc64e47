package tare.social.data;

/** What was to be written is there already. */
public final class Conflict extends Exception {
    /** As PostgreSQL names it. */
    static final String UNIQUE_VIOLATION = "23505";

    Conflict() {
        super("it is there already", null, false, false);
    }
}
