package tare.social.data;

import java.sql.ResultSet;
import java.sql.SQLException;
import java.util.List;

/** What there is of people, events and tags. It is read from the database, or was a while ago and has not changed. */
public final class Social {
    private static final int LISTED = 10;
    private static final int CLOUD = 50;
    private static final int ATTENDED = 5;

    private static final String ADDRESS =
            "a.street1, a.street2, a.city, a.state, a.zip, a.country, a.latitude, a.longitude";
    private static final String NEXT = "SELECT socialeventid, title FROM socialevent WHERE eventtimestamp >= ? "
            + "ORDER BY eventtimestamp, socialeventid LIMIT " + LISTED;
    private static final String TAGS =
            "SELECT tag FROM socialeventtag ORDER BY refcount DESC, socialeventtagid LIMIT " + CLOUD;
    private static final String ATTENDS = "SELECT e.socialeventid, e.title FROM person_socialevent p "
            + "JOIN socialevent e ON e.socialeventid = p.socialeventid WHERE p.username = ? AND e.eventtimestamp >= ? "
            + "ORDER BY e.eventtimestamp, e.socialeventid LIMIT " + ATTENDED;
    private static final String HITS = "SELECT count(*) FROM socialeventtag t JOIN socialeventtag_socialevent s "
            + "ON s.socialeventtagid = t.socialeventtagid WHERE t.tag = ?";
    private static final String TAGGED = "SELECT e.socialeventid, e.title FROM socialeventtag t "
            + "JOIN socialeventtag_socialevent s ON s.socialeventtagid = t.socialeventtagid "
            + "JOIN socialevent e ON e.socialeventid = s.socialeventid WHERE t.tag = ? "
            + "ORDER BY e.createdtimestamp DESC, e.socialeventid DESC LIMIT " + LISTED;
    private static final String EVENT = "SELECT e.title, e.summary, e.description, e.telephone, e.timezone, "
            + "e.eventtimestamp, p.userid, p.firstname, p.lastname, " + ADDRESS + " FROM socialevent e "
            + "JOIN address a ON a.addressid = e.addressid LEFT JOIN person p ON p.username = e.submitterusername "
            + "WHERE e.socialeventid = ?";
    private static final String ATTENDEES = "SELECT p.userid, p.firstname, p.lastname FROM person_socialevent s "
            + "JOIN person p ON p.username = s.username WHERE s.socialeventid = ? ORDER BY p.userid";
    private static final String EVENT_TAGS = "SELECT t.tag FROM socialeventtag_socialevent s JOIN socialeventtag t "
            + "ON t.socialeventtagid = s.socialeventtagid WHERE s.socialeventid = ? ORDER BY t.socialeventtagid";
    private static final String COMMENTS = "SELECT username, comments, rating FROM comments_rating "
            + "WHERE socialeventid = ? ORDER BY creationtime, commentid";
    private static final String PERSON = "SELECT p.firstname, p.lastname, p.summary, p.email, p.telephone, p.timezone, "
            + ADDRESS + ", p.username FROM person p JOIN address a ON a.addressid = p.addressid WHERE p.userid = ?";
    private static final String FRIENDS = "SELECT f.userid, f.firstname, f.lastname FROM person_person p "
            + "JOIN person f ON f.username = p.friend_username WHERE p.person_username = ? ORDER BY f.userid";
    private static final String ANNOUNCED = "SELECT socialeventid, title FROM socialevent WHERE submitterusername = ? "
            + "ORDER BY createdtimestamp DESC, socialeventid DESC LIMIT " + LISTED;
    private static final String LOGIN =
            "SELECT userid, firstname, lastname FROM person WHERE username = ? AND password = ?";
    private static final String TAKEN = "SELECT 1 FROM person WHERE username = ?";

    private final Database database;
    private final Objects objects;
    private final Clock clock;

    Social(Database database, Objects objects, Clock clock) {
        this.database = database;
        this.objects = objects;
        this.clock = clock;
    }

    /** Where what is read and what is written belong together. */
    public static Social of(Database database, Objects objects) {
        return new Social(database, objects, new Clock());
    }

    /** What is written belongs to what is read here. */
    public Writes writes() {
        return new Writes(database, objects, clock, this);
    }

    private record Names(List<String> all) implements Objects.Sized {
        @Override
        public int bytes() {
            return 100 * all.size();
        }
    }

    private record Titles(List<Title> all) implements Objects.Sized {
        @Override
        public int bytes() {
            return 100 + 150 * all.size();
        }
    }

    /** Events that come next, and the tags that are used most. */
    public Upcoming upcoming() throws Unavailable {
        Names tags = objects.get(Objects.Kind.TAGS, "", () -> new Names(
                database.read(on -> on.list(TAGS, row -> row.getString(1)))));
        return new Upcoming(database.read(on -> on.list(NEXT, Social::title, clock.now())), tags.all());
    }

    /** Events that come next of those which somebody attends. */
    public List<Title> attendedBy(Visitor visitor) throws Unavailable {
        return objects.get(Objects.Kind.ATTENDS, visitor.user(), () -> new Titles(
                database.read(on -> on.list(ATTENDS, Social::title, visitor.user(), clock.now())))).all();
    }

    /** Events with a tag: none where nobody uses it. */
    public Tagged tagged(String tag) throws Unavailable {
        return objects.get(Objects.Kind.TAG, tag, () -> database.read(on -> {
            List<Title> newest = on.list(TAGGED, Social::title, tag);
            int hits = newest.size() < LISTED ? newest.size() : on.first(HITS, row -> row.getInt(1), tag);
            return new Tagged(hits, newest);
        }));
    }

    /** An event; null where there is none. */
    public Event event(int id) throws Unavailable {
        return objects.get(Objects.Kind.EVENT, id, () -> database.read(on -> {
            Event bare = on.first(EVENT, row -> event(id, row), id);
            return bare == null ? null : new Event(id, bare.title(), bare.summary(), bare.description(),
                    bare.telephone(), bare.timezone(), bare.time(), bare.by(), bare.address(),
                    on.list(ATTENDEES, row -> human(row, 1), id), on.list(EVENT_TAGS, row -> row.getString(1), id),
                    on.list(COMMENTS, row -> new Comment(row.getString(1), row.getString(2), row.getInt(3)), id));
        }));
    }

    private static Event event(int id, ResultSet row) throws SQLException {
        int by = row.getInt(7);
        return new Event(id, row.getString(1), row.getString(2), row.getString(3), row.getString(4), row.getString(5),
                row.getObject(6, java.time.LocalDateTime.class), by == 0 ? null : human(row, 7), address(row, 10),
                List.of(), List.of(), List.of());
    }

    /** A person; null where there is none. */
    public Person person(int id) throws Unavailable {
        return objects.get(Objects.Kind.PERSON, id, () -> database.read(on -> {
            Person bare = on.first(PERSON, row -> new Person(id, row.getString(15),
                    row.getString(1) + " " + row.getString(2), row.getString(3), row.getString(4), row.getString(5),
                    row.getString(6), address(row, 7), List.of(), List.of()), id);
            return bare == null ? null : new Person(id, bare.user(), bare.name(), bare.summary(), bare.email(),
                    bare.telephone(), bare.timezone(), bare.address(),
                    on.list(FRIENDS, row -> human(row, 1), bare.user()),
                    on.list(ANNOUNCED, Social::title, bare.user()));
        }));
    }

    /** Who logs in with that; null where nobody does. */
    public Visitor login(String user, String password) throws Unavailable {
        return database.read(on -> on.first(LOGIN,
                row -> new Visitor(row.getInt(1), user, row.getString(2) + " " + row.getString(3)), user, password));
    }

    /** Whether somebody has that name. */
    public boolean isTaken(String user) throws Unavailable {
        return database.read(on -> on.first(TAKEN, row -> true, user)) != null;
    }

    private static Title title(ResultSet row) throws SQLException {
        return new Title(row.getInt(1), row.getString(2));
    }

    private static Human human(ResultSet row, int at) throws SQLException {
        return new Human(row.getInt(at), row.getString(at + 1) + " " + row.getString(at + 2));
    }

    private static Address address(ResultSet row, int at) throws SQLException {
        return new Address(row.getString(at), row.getString(at + 1), row.getString(at + 2), row.getString(at + 3),
                row.getString(at + 4), row.getString(at + 5), row.getDouble(at + 6), row.getDouble(at + 7));
    }
}
