package tare.social.data;

/**
 * Where somebody lives or something takes place.
 *
 * @param latitude degrees
 * @param longitude degrees
 */
public record Address(String street1, String street2, String city, String state, String zip, String country,
        double latitude, double longitude) {
    /** The same elsewhere. */
    public Address at(double north, double east) {
        return new Address(street1, street2, city, state, zip, country, north, east);
    }

    int bytes() {
        return 300 + street1.length() + street2.length() + city.length() + state.length() + zip.length()
                + country.length();
    }
}
