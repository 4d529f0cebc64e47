package tare.social.data;

import java.sql.SQLException;
import java.time.LocalDateTime;
import java.util.ArrayList;
import java.util.List;

/** What users change. Each is one transaction; what it changed is cleared of the objects that are kept. */
public final class Writes {
    private static final String ADDRESS = "INSERT INTO address (addressid, street1, street2, city, state, zip, country, "
            + "latitude, longitude) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)";
    private static final String PERSON = "INSERT INTO person (userid, username, password, firstname, lastname, email, "
            + "telephone, timezone, summary, imageurl, imagethumburl, addressid) "
            + "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";
    private static final String EVENT = "INSERT INTO socialevent (socialeventid, title, summary, description, "
            + "submitterusername, addressid, telephone, timezone, eventtimestamp, createdtimestamp, imageurl, "
            + "imagethumburl, literatureurl, totalscore, numberofvotes, disabled) "
            + "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0, 0, 0)";
    /** In the order of the letters, as an event has its tags. */
    private static final String LOCK_TAGS =
            "SELECT socialeventtagid, tag FROM socialeventtag WHERE tag = ANY (?) ORDER BY tag COLLATE \"C\" FOR UPDATE";
    private static final String USE_TAGS =
            "UPDATE socialeventtag SET refcount = refcount + 1 WHERE socialeventtagid = ANY (?)";
    private static final String NEW_TAG = "INSERT INTO socialeventtag AS t (socialeventtagid, tag, refcount) "
            + "VALUES (?, ?, 1) ON CONFLICT (tag) DO UPDATE SET refcount = t.refcount + 1 RETURNING socialeventtagid";
    private static final String TAG_EVENT =
            "INSERT INTO socialeventtag_socialevent (socialeventtagid, socialeventid) SELECT unnest(?), ?";
    private static final String ATTEND =
            "INSERT INTO person_socialevent (username, socialeventid) VALUES (?, ?) ON CONFLICT DO NOTHING";
    private static final String ATTENDEES = "SELECT count(*) FROM person_socialevent WHERE socialeventid = ?";

    private final Database database;
    private final Objects objects;
    private final Clock clock;
    private final Social social;
    private final IdAllocator ids;

    Writes(Database database, Objects objects, Clock clock, Social social) {
        this.database = database;
        this.objects = objects;
        this.clock = clock;
        this.social = social;
        ids = new IdAllocator(database);
    }

    /** A number for a person. */
    public int newPersonId() throws Unavailable {
        return ids.next(IdAllocator.Of.PERSON);
    }

    /** A number for an event. */
    public int newEventId() throws Unavailable {
        return ids.next(IdAllocator.Of.SOCIALEVENT);
    }

    /** Registers a person under a number of their own. */
    public void register(int id, NewPerson who) throws Unavailable, Conflict {
        int address = ids.next(IdAllocator.Of.ADDRESS);
        database.write(on -> {
            insert(on, address, who.address());
            return on.change(PERSON, id, who.user(), who.password(), who.first(), who.last(), who.email(),
                    who.telephone(), who.timezone(), who.summary(), "/image/person/" + id + ".jpg",
                    "/image/person/" + id + "t.jpg", address);
        });
        // Somebody may have asked too early; that nobody was there is not kept.
    }

    /** Announces an event under a number of its own. */
    public void announce(int id, NewEvent event) throws Unavailable, Conflict {
        int address = ids.next(IdAllocator.Of.ADDRESS);
        // Numbers for tags that nobody has used yet, of which there are few: taken where they are needed, outside.
        List<String> unknown = unknown(event.tags());
        List<Integer> numbers = new ArrayList<>();
        for (int i = 0; i < unknown.size(); i++) {
            numbers.add(ids.next(IdAllocator.Of.SOCIALEVENTTAG));
        }
        LocalDateTime now = clock.now();
        try {
            database.write(on -> {
                insert(on, address, event.address());
                on.change(EVENT, id, event.title(), event.summary(), event.description(), event.by(), address,
                        event.telephone(), event.timezone(), event.time(), now, "/image/event/" + id + ".jpg",
                        "/image/event/" + id + "t.jpg", "/document/event/" + id + ".pdf");
                return tag(on, id, event.tags(), unknown, numbers);
            });
        } finally {
            // Whatever became of it: what was never answered may have been written.
            objects.clear(Objects.Kind.TAGS, "");
            objects.clear(Objects.Kind.PERSON, event.byId());
            for (String tag : event.tags()) {
                objects.clear(Objects.Kind.TAG, tag);
            }
        }
    }

    private List<String> unknown(List<String> tags) throws Unavailable {
        List<String> unknown = new ArrayList<>(tags);
        if (!tags.isEmpty()) {
            unknown.removeAll(database.read(on -> on.list("SELECT tag FROM socialeventtag WHERE tag = ANY (?)",
                    row -> row.getString(1), (Object) tags.toArray(new String[0]))));
        }
        return unknown;
    }

    private static int tag(Statements on, int event, List<String> tags, List<String> unknown, List<Integer> numbers)
            throws SQLException {
        if (tags.isEmpty()) {
            return 0;
        }
        List<Integer> used = new ArrayList<>();
        List<Integer> fresh = new ArrayList<>();
        List<String> known = new ArrayList<>();
        // One after the other in their order, whoever takes which for new: two who need the same ones would each wait for the other.
        for (String tag : tags) {
            int at = unknown.indexOf(tag);
            if (at < 0) {
                known.add(tag);
            } else {
                used.addAll(locked(on, known));
                known.clear();
                fresh.add(on.first(NEW_TAG, row -> row.getInt(1), numbers.get(at), tag));
            }
        }
        used.addAll(locked(on, known));
        on.change(USE_TAGS, (Object) used.toArray(new Integer[0]));
        used.addAll(fresh);
        return on.change(TAG_EVENT, used.toArray(new Integer[0]), event);
    }

    private static List<Integer> locked(Statements on, List<String> tags) throws SQLException {
        return tags.isEmpty() ? List.of()
                : on.list(LOCK_TAGS, row -> row.getInt(1), (Object) tags.toArray(new String[0]));
    }

    private static void insert(Statements on, int id, Address address) throws SQLException {
        on.change(ADDRESS, id, address.street1(), address.street2(), address.city(), address.state(), address.zip(),
                address.country(), address.latitude(), address.longitude());
    }

    /** Somebody will attend: says how many then do. They may have said so before. -1 where there is no such event. */
    public int attend(int event, Visitor visitor) throws Unavailable, Conflict {
        if (social.event(event) == null) {
            return -1;
        }
        try {
            return database.write(on -> {
                on.change(ATTEND, visitor.user(), event);
                return on.first(ATTENDEES, row -> row.getInt(1), event);
            });
        } finally {
            // Whatever became of it, as above.
            objects.clear(Objects.Kind.EVENT, event);
            objects.clear(Objects.Kind.ATTENDS, visitor.user());
        }
    }
}
