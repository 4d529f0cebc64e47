package tare.social.data;

/**
 * A person to be registered.
 *
 * @param user name to log in with
 */
public record NewPerson(String user, String password, String first, String last, String email, String telephone,
        String timezone, String summary, Address address) {
    /** The same with another address. */
    public NewPerson at(Address other) {
        return new NewPerson(user, password, first, last, email, telephone, timezone, summary, other);
    }
}
