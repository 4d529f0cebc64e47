package tare.common;

/** Input that the application cannot start with: an argument, a folder, a table or a certificate. */
public final class InvalidInput extends Exception {
    /** The message says which, why, and what would be valid. */
    public InvalidInput(String why) {
        super(why);
    }
}
