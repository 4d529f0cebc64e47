package tare.social;

import java.net.URLEncoder;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import tare.common.Text;
import tare.social.data.Address;
import tare.social.data.Comment;
import tare.social.data.Event;
import tare.social.data.Human;
import tare.social.data.Person;
import tare.social.data.Tagged;
import tare.social.data.Title;
import tare.social.data.Upcoming;
import tare.social.data.Visitor;
import tare.social.files.StaticFiles;

/** What pages look like. */
final class Html {
    /** Faces on the page of an event. */
    private static final int FACES = 3;
    private static final String NOBODY = "-";

    private static final byte[] BEGIN = Text.of("<!DOCTYPE html><html><head><title>");
    private static final byte[] USER = Text.of("</head><body>\n<p id=\"user\">");
    private static final byte[] HEADING = Text.of("</p>\n<h1>");
    private static final byte[] HEADING_END = Text.of("</h1>\n");
    private static final byte[] END = Text.of("</body></html>\n");
    private static final byte[] LOGIN = Text.of("<form action=\"/login\" method=\"post\"><input name=\"user\">"
            + "<input name=\"password\" type=\"password\"><button>Log in</button></form>\n");
    private static final byte[] NEW_PERSON = form("/person", "user", "password", "first", "last", "email", "telephone",
            "timezone", "summary", "street1", "street2", "city", "state", "zip", "country", "image", "thumbnail");
    private static final byte[] NEW_EVENT = form("/event", "title", "summary", "description", "telephone", "timezone",
            "time", "tags", "street1", "street2", "city", "state", "zip", "country", "image", "thumbnail", "document");

    /** Kinds of pages: what each needs beside what all do. */
    enum Kind {
        HOME,
        TAG_SEARCH,
        EVENT_DETAIL,
        PERSON_DETAIL,
        ADD_PERSON,
        ADD_EVENT,
        OTHER;

        /** Between the title and the body: scripts and style sheets; the small images are those of the latter. */
        private final byte[] head = head(name().toLowerCase(Locale.ROOT));

        private static byte[] head(String name) {
            StringBuilder head = new StringBuilder("</title>\n");
            List<String> addresses = new ArrayList<>(StaticFiles.addresses("site"));
            addresses.addAll(StaticFiles.addresses(name));
            for (String address : addresses) {
                if (address.endsWith(".js")) {
                    head.append("<script src=\"").append(address).append("\" defer></script>\n");
                } else if (address.endsWith(".css")) {
                    head.append("<link rel=\"stylesheet\" href=\"").append(address).append("\">\n");
                }
            }
            return Text.of(head.toString());
        }
    }

    private Html() {}

    private static byte[] form(String action, String... names) {
        StringBuilder form = new StringBuilder("<form action=\"" + action
                + "\" method=\"post\" enctype=\"multipart/form-data\">\n");
        for (String name : names) {
            String type = switch (name) {
                case "image", "thumbnail", "document" -> " type=\"file\"";
                case "password" -> " type=\"password\"";
                case "time" -> " type=\"datetime-local\"";
                default -> "";
            };
            form.append("<label>").append(name).append(" <input name=\"").append(name).append('"').append(type)
                    .append("></label>\n");
        }
        return Text.of(form.append("<button>Send</button></form>\n").toString());
    }

    private static Text begin(Text page, Kind kind, Visitor visitor, String heading) {
        return page.clear().put(BEGIN).escaped(heading).put(kind.head).put(USER)
                .escaped(visitor == null ? NOBODY : visitor.name()).put(HEADING).escaped(heading).put(HEADING_END);
    }

    /** The home page; `attended` is not shown to those who are not logged in. */
    static Text home(Text page, Visitor visitor, Upcoming upcoming, List<Title> attended) {
        begin(page, Kind.HOME, visitor, "Upcoming events");
        listed(page, upcoming.events());
        page.put("<p>");
        for (String tag : upcoming.tags()) {
            tag(page, tag);
        }
        page.put("</p>\n");
        if (visitor == null) {
            page.put(LOGIN);
        } else {
            page.put("<ul>\n");
            for (Title event : attended) {
                event(page.put("<li>"), event).put("</li>\n");
            }
            page.put("</ul>\n");
        }
        return page.put(END);
    }

    private static void listed(Text page, List<Title> events) {
        page.put("<ul>\n");
        for (Title event : events) {
            event(page.put("<li>"), event).put("<img src=\"/image/event/").put(event.id()).put("t.jpg\"></li>\n");
        }
        page.put("</ul>\n");
    }

    private static Text event(Text page, Title event) {
        return page.put("<a href=\"/event?id=").put(event.id()).put("\">").escaped(event.title()).put("</a>");
    }

    private static void tag(Text page, String tag) {
        page.put("<a href=\"/tag?name=").put(isPlain(tag) ? tag : URLEncoder.encode(tag, StandardCharsets.UTF_8))
                .put("\">").escaped(tag).put("</a>\n");
    }

    /** Whether it may stand in an address as it is. Most names do, and there are fifty on a page. */
    private static boolean isPlain(String tag) {
        for (int i = 0; i < tag.length(); i++) {
            char one = tag.charAt(i);
            if ((one < 'a' || one > 'z') && (one < '0' || one > '9') && (one < 'A' || one > 'Z')) {
                return false;
            }
        }
        return true;
    }

    private static Text person(Text page, Human person) {
        return page.put("<a href=\"/person?id=").put(person.id()).put("\">").escaped(person.name()).put("</a>");
    }

    /** Events with a tag. */
    static Text tagged(Text page, Visitor visitor, String tag, Tagged tagged) {
        begin(page, Kind.TAG_SEARCH, visitor, tag);
        page.put("<p id=\"hits\">").put(tagged.hits()).put("</p>\n");
        listed(page, tagged.newest());
        return page.put(END);
    }

    /** An event. */
    static Text event(Text page, Visitor visitor, Event event) {
        boolean may = visitor != null && !event.isAttendedBy(visitor.id());
        begin(page, Kind.EVENT_DETAIL, visitor, event.title());
        page.put("<p id=\"attendees\">").put(event.attendees().size()).put("</p>\n<p id=\"attend\">")
                .put(may ? "yes" : "no").put("</p>\n");
        page.put("<img src=\"/image/event/").put(event.id()).put(".jpg\">\n<a href=\"/document/event/").put(event.id())
                .put(".pdf\">Document</a>\n<ul>\n");
        if (event.by() != null) {
            person(page.put("<li>"), event.by()).put("</li>\n");
        }
        for (Human one : event.attendees()) {
            person(page.put("<li>"), one).put("</li>\n");
        }
        page.put("</ul>\n");
        faces(page, event);
        page.put("<p>");
        for (String tag : event.tags()) {
            tag(page, tag);
        }
        page.put("</p>\n<p>").escaped(event.time().toString()).put(" ").escaped(event.timezone()).put("</p>\n");
        address(page, event.address());
        page.put("<p>").escaped(event.telephone()).put("</p>\n<p>").escaped(event.summary()).put("</p>\n<p>")
                .escaped(event.description()).put("</p>\n");
        for (Comment comment : event.comments()) {
            page.put("<p>").escaped(comment.by()).put(" (").put(comment.rating()).put("/5): ").escaped(comment.text())
                    .put("</p>\n");
        }
        return page.put(END);
    }

    private static void faces(Text page, Event event) {
        int left = FACES;
        if (event.by() != null) {
            face(page, event.by().id());
            left--;
        }
        for (Human one : event.attendees()) {
            if (left == 0) {
                break;
            }
            if (event.by() == null || one.id() != event.by().id()) {
                face(page, one.id());
                left--;
            }
        }
    }

    private static void face(Text page, int person) {
        page.put("<img src=\"/image/person/").put(person).put("t.jpg\">\n");
    }

    private static void address(Text page, Address at) {
        page.put("<p>").escaped(at.street1()).put(" ").escaped(at.street2()).put(", ").escaped(at.city()).put(", ")
                .escaped(at.state()).put(" ").escaped(at.zip()).put(", ").escaped(at.country()).put(" (")
                .put(Double.toString(at.latitude())).put(", ").put(Double.toString(at.longitude())).put(")</p>\n");
    }

    /** A person. */
    static Text person(Text page, Visitor visitor, Person person) {
        begin(page, Kind.PERSON_DETAIL, visitor, person.name());
        page.put("<img src=\"/image/person/").put(person.id()).put(".jpg\">\n<p>").escaped(person.summary())
                .put("</p>\n<ul>\n");
        for (Human friend : person.friends()) {
            person(page.put("<li>"), friend).put("</li>\n");
        }
        page.put("</ul>\n<ul>\n");
        for (Title event : person.events()) {
            event(page.put("<li>"), event).put("</li>\n");
        }
        page.put("</ul>\n<p>").escaped(person.email()).put(" ").escaped(person.telephone()).put(" ")
                .escaped(person.timezone()).put("</p>\n");
        address(page, person.address());
        return page.put(END);
    }

    /** What is shown to the one who has just said that they will attend. */
    static Text attends(Text page, Visitor visitor, int attendees) {
        page.clear().put("<p id=\"attendees\">").put(attendees).put("</p>");
        return person(page, new Human(visitor.id(), visitor.name()));
    }

    /** The form for a new person. */
    static Text newPerson(Text page, Visitor visitor) {
        return begin(page, Kind.ADD_PERSON, visitor, "New person").put(NEW_PERSON).put(END);
    }

    /** The form for a new event. */
    static Text newEvent(Text page, Visitor visitor) {
        return begin(page, Kind.ADD_EVENT, visitor, "New event").put(NEW_EVENT).put(END);
    }

    /** A page that says something. */
    static Text says(Text page, Visitor visitor, String heading, String what) {
        return begin(page, Kind.OTHER, visitor, heading).put("<p>").escaped(what).put("</p>\n").put(END);
    }
}
