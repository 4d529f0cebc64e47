package tare.social.data;

/**
 * A person, as far as a link needs it.
 *
 * @param name first and last
 */
public record Human(int id, String name) {}
