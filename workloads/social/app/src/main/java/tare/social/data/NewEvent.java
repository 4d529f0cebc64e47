package tare.social.data;

import java.time.LocalDateTime;
import java.util.List;

/**
 * An event to be announced.
 *
 * @param tags each once, sorted
 * @param by user name
 * @param byId the same person
 */
public record NewEvent(String title, String summary, String description, String telephone, String timezone,
        LocalDateTime time, List<String> tags, Address address, String by, int byId) {
    /** The same at another address. */
    public NewEvent at(Address other) {
        return new NewEvent(title, summary, description, telephone, timezone, time, tags, other, by, byId);
    }
}
