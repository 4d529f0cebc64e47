package tare.social.data;

import java.io.Serializable;

/**
 * A person who is logged in.
 *
 * @param user name that they log in with
 * @param name first and last
 */
public record Visitor(int id, String user, String name) implements Serializable {}
