package tare.social.files;

/** The file store or the geocoder did not do its part; the message says what happened. */
public final class Unserved extends Exception {
    private static final long serialVersionUID = 1;

    Unserved(String why) {
        // Its origin is no riddle: no stack is taken, which would be most of the cost when all requests fail.
        super(why, null, false, false);
    }
}
