package tare.social.data;

/** An event, as far as a link needs it. */
public record Title(int id, String title) {}
