package tare.social.data;

import java.time.LocalDateTime;
import java.util.List;

/**
 * An event with all that its page shows.
 *
 * @param by who announced it; null where that person is not in the database
 * @param attendees by number
 * @param comments oldest first
 */
public record Event(int id, String title, String summary, String description, String telephone, String timezone,
        LocalDateTime time, Human by, Address address, List<Human> attendees, List<String> tags,
        List<Comment> comments) implements Objects.Sized {
    /** Whether that person has said that they will attend. */
    public boolean isAttendedBy(int person) {
        for (Human one : attendees) {
            if (one.id() == person) {
                return true;
            }
        }
        return false;
    }

    @Override
    public int bytes() {
        int sum = 500 + title.length() + summary.length() + description.length() + address.bytes()
                + 110 * attendees.size() + 64 * tags.size();
        for (Comment comment : comments) {
            sum += 130 + comment.text().length();
        }
        return sum;
    }
}
