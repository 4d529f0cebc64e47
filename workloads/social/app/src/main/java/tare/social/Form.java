package tare.social;

import jakarta.servlet.ServletException;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import jakarta.servlet.http.Part;
import java.io.IOException;
import java.time.LocalDateTime;
import java.time.format.DateTimeParseException;
import java.util.List;
import java.util.TreeSet;
import org.apache.tomcat.util.http.InvalidParameterException;
import tare.common.Causes;
import tare.common.Refused;
import tare.social.data.Address;
import tare.social.data.NewEvent;
import tare.social.data.NewPerson;
import tare.social.data.Visitor;

/** What a user filled in: checked, so that the database takes it. */
final class Form {
    private static final int TAGS = 20;
    private static final int TAG_LETTERS = 30;
    private static final int LAST_YEAR = 9_999;

    private final HttpServletRequest request;

    /** Reads nothing yet. */
    Form(HttpServletRequest request) {
        this.request = request;
    }

    /** The same for what is sent in parts. */
    static Form inParts(HttpServletRequest request) throws Refused {
        String type = request.getContentType();
        if (type == null || !type.regionMatches(true, 0, "multipart/form-data", 0, 19)) {
            throw Refused.badRequest("the form is to be sent as multipart/form-data");
        }
        try {
            request.getParts();
        } catch (InvalidParameterException e) {
            throw unreadable(e.getErrorCode(), e);
        } catch (IllegalStateException e) {
            throw unreadable(HttpServletResponse.SC_REQUEST_ENTITY_TOO_LARGE, e);
        } catch (IOException | ServletException e) {
            throw unreadable(HttpServletResponse.SC_BAD_REQUEST, e);
        }
        return new Form(request);
    }

    private static Refused unreadable(int status, Throwable failure) {
        if (status == HttpServletResponse.SC_REQUEST_ENTITY_TOO_LARGE) {
            return new Refused(status, Server.TOO_LONG);
        }
        return new Refused(status, "the form cannot be read: " + Causes.message(Causes.root(failure)));
    }

    private String given(String name) throws Refused {
        try {
            return request.getParameter(name);
        } catch (InvalidParameterException e) {
            throw unreadable(e.getErrorCode(), e);
        }
    }

    /** Something that may be empty. */
    String text(String name, int letters) throws Refused {
        String value = given(name);
        if (value == null) {
            throw Refused.badRequest("'" + name + "' is missing");
        }
        if (value.length() > letters || value.indexOf('\0') >= 0) {
            throw Refused.badRequest("'" + name + "' has more than " + letters + " letters, or one that nobody can read");
        }
        return value;
    }

    /** Something that is not empty. */
    String needed(String name, int letters) throws Refused {
        String value = text(name, letters);
        if (value.isBlank()) {
            throw Refused.badRequest("'" + name + "' is empty");
        }
        return value;
    }

    /** The number of a row. */
    int id() throws Refused {
        String value = given("id");
        if (value != null && value.length() <= 10) {
            try {
                int id = Integer.parseInt(value);
                if (id > 0) {
                    return id;
                }
            } catch (NumberFormatException e) {
                // Reported below, like a number that is out of range.
            }
        }
        throw Refused.badRequest("'id' is a whole number from 1");
    }

    /** A file that was uploaded. */
    Part file(String name) throws Refused {
        try {
            Part part = request.getPart(name);
            if (part != null && part.getSubmittedFileName() != null && part.getSize() > 0) {
                return part;
            }
        } catch (IOException | ServletException | IllegalStateException e) {
            // It was read before.
        }
        throw Refused.badRequest("the file '" + name + "' is missing");
    }

    /** Where somebody lives or something takes place; the coordinates come later. */
    Address address() throws Refused {
        return new Address(text("street1", 55), text("street2", 55), text("city", 55), text("state", 25),
                text("zip", 12), text("country", 55), 0, 0);
    }

    NewPerson person() throws Refused {
        return new NewPerson(needed("user", 60), needed("password", 60), needed("first", 60), needed("last", 60),
                text("email", 90), text("telephone", 25), text("timezone", 25), text("summary", 2_500), address());
    }

    NewEvent event(Visitor by) throws Refused {
        return new NewEvent(needed("title", 100), text("summary", 100), text("description", 500),
                text("telephone", 25), text("timezone", 25), time(), tags(), address(), by.user(), by.id());
    }

    private LocalDateTime time() throws Refused {
        try {
            LocalDateTime time = LocalDateTime.parse(needed("time", 30));
            if (time.getYear() > 0 && time.getYear() <= LAST_YEAR) {
                return time;
            }
        } catch (DateTimeParseException e) {
            // Reported below, like a time that is out of range.
        }
        throw Refused.badRequest("'time' is one such as 2026-03-01T18:00");
    }

    private List<String> tags() throws Refused {
        TreeSet<String> tags = new TreeSet<>(List.of(text("tags", TAGS * (TAG_LETTERS + 1)).trim().split("\\s+")));
        tags.remove("");
        for (String tag : tags) {
            if (tag.length() > TAG_LETTERS) {
                throw Refused.badRequest("a tag has more than " + TAG_LETTERS + " letters");
            }
        }
        if (tags.size() > TAGS) {
            throw Refused.badRequest("there are more than " + TAGS + " tags");
        }
        return List.copyOf(tags);
    }
}
