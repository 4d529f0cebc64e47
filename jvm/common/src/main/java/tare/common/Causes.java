package tare.common;

/** What is printed of an exception. */
public final class Causes {
    private Causes() {}

    /** The cause of all causes. */
    public static Throwable root(Throwable failure) {
        Throwable root = failure;
        while (root.getCause() != null) {
            root = root.getCause();
        }
        return root;
    }

    /** Its message; its kind where it has none. */
    public static String message(Throwable failure) {
        return failure.getMessage() == null ? failure.getClass().getSimpleName() : failure.getMessage();
    }
}
