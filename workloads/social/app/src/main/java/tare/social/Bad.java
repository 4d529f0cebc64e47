package tare.social;

/** A wrong argument of the application. */
final class Bad extends Exception {
    private static final long serialVersionUID = 1;

    Bad(String why) {
        super(why);
    }
}
