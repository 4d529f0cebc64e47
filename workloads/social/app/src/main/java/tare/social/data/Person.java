package tare.social.data;

import java.util.List;

/**
 * A person with all that their page shows.
 *
 * @param user name that they log in with
 * @param name first and last
 * @param friends by number
 * @param events that they announced last, newest first
 */
public record Person(int id, String user, String name, String summary, String email, String telephone, String timezone,
        Address address, List<Human> friends, List<Title> events) implements Objects.Sized {
    @Override
    public int bytes() {
        return 600 + summary.length() + address.bytes() + 110 * friends.size() + 150 * events.size();
    }
}
