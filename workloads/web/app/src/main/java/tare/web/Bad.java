package tare.web;

/** What the server cannot begin with: an option, a folder, a table or a certificate. */
final class Bad extends Exception {
    private static final long serialVersionUID = 1;

    Bad(String why) {
        super(why);
    }
}
