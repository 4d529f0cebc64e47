package tare.social;

/** What the application was told wrongly. */
final class Bad extends Exception {
    private static final long serialVersionUID = 1;

    Bad(String why) {
        super(why);
    }
}
