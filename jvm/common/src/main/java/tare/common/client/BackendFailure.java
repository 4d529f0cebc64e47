package tare.common.client;

/** Another server did not do its part. The message says which and why. */
public final class BackendFailure extends Exception {
    /** The message is for the user. */
    public BackendFailure(String why) {
        // Its origin is clear, and a stack would be most of its cost where all requests fail.
        super(why, null, false, false);
    }
}
