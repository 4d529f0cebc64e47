package tare.social;

/**
 * How long the application waits for others before it says that they have failed.
 *
 * @param poolMs for a connection to the database, milliseconds
 * @param statementS for the answer to a statement, seconds
 * @param storeMs for the file store to go on, milliseconds
 */
record Timeouts(int poolMs, int statementS, int storeMs) {
    /** Longer than what a user waits for at most, and less than what one would call a hang. */
    static final Timeouts USUAL = new Timeouts(5_000, 20, 20_000);
}
