package tare.social.data;

/**
 * What somebody said about an event.
 *
 * @param by user name
 * @param rating 0 to 5
 */
public record Comment(String by, String text, int rating) {}
