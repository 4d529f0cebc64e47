package tare.social.data;

import java.util.List;

/**
 * What the home page shows to everybody.
 *
 * @param events that come next
 * @param tags most used first
 */
public record Upcoming(List<Title> events, List<String> tags) {}
