package tare.social;

import jakarta.servlet.http.HttpServlet;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import jakarta.servlet.http.HttpSession;
import jakarta.servlet.http.Part;
import java.io.IOException;
import java.util.List;
import java.util.concurrent.atomic.LongAdder;
import tare.common.Refused;
import tare.common.Text;
import tare.common.client.BackendFailure;
import tare.common.server.Responses;
import tare.common.server.Sessions;
import tare.social.data.Address;
import tare.social.data.Conflict;
import tare.social.data.Event;
import tare.social.data.NewEvent;
import tare.social.data.NewPerson;
import tare.social.data.Person;
import tare.social.data.Social;
import tare.social.data.Unavailable;
import tare.social.data.Visitor;
import tare.social.data.Writes;
import tare.social.files.Store;

/** Makes pages, and takes what users send. */
final class PageServlet extends HttpServlet {
    /** Of the session. */
    static final String COOKIE = "SESSION";

    private static final String VISITOR = "visitor";
    private static final String HTML = "text/html;charset=utf-8";
    private static final String PLAIN = "text/plain;charset=utf-8";
    private static final int USER_LETTERS = 60;
    private static final int TAG_LETTERS = 30;
    /** Who has asked for nothing for so long is not logged in any more, seconds. */
    private static final int SESSION_TIMEOUT_S = 1_800;

    private final Social social;
    private final Writes writes;
    private final Store store;
    private final Counts counts;
    private final HomePageCache home;
    private final ThreadLocal<Text> texts = ThreadLocal.withInitial(Text::new);

    PageServlet(Social social, Store store, Counts counts, int homeTtlS) {
        this.social = social;
        this.store = store;
        this.counts = counts;
        writes = social.writes();
        home = new HomePageCache(homeTtlS, counts);
    }

    /** Does what is asked. */
    @FunctionalInterface
    private interface Action {
        void run() throws IOException, Refused, Unavailable, BackendFailure, Conflict;
    }

    @Override
    protected void doGet(HttpServletRequest request, HttpServletResponse response) throws IOException {
        Visitor visitor = visitor(request);
        attempt(visitor, response, () -> {
            Form form = new Form(request);
            Text page = texts.get();
            switch (request.getServletPath()) {
                case "/" -> home(visitor, page, response);
                case "/tag" -> {
                    String tag = form.needed("name", TAG_LETTERS);
                    send(Html.tagged(page, visitor, tag, social.tagged(tag)), response);
                }
                case "/event" -> send(Html.event(page, visitor, found(social.event(form.id()))), response);
                case "/person" -> send(Html.person(page, visitor, found(social.person(form.id()))), response);
                case "/person/new" -> send(Html.newPerson(page, visitor), response);
                case "/event/new" -> send(Html.newEvent(page, member(visitor)), response);
                case "/person/check" -> {
                    boolean taken = social.isTaken(form.needed("user", USER_LETTERS));
                    send(page.clear().put(taken ? "taken" : "free"), PLAIN, response);
                }
                case "/logout" -> {
                    Sessions.end(request.getSession(false));
                    redirect("/", response);
                }
                default -> throw new Refused(HttpServletResponse.SC_NOT_FOUND, "there is no such page");
            }
        });
    }

    @Override
    protected void doPost(HttpServletRequest request, HttpServletResponse response) throws IOException {
        Visitor visitor = visitor(request);
        attempt(visitor, response, () -> {
            switch (request.getServletPath()) {
                case "/login" -> login(new Form(request), visitor, request, response);
                case "/event/attend" -> attend(member(visitor), new Form(request).id(), response);
                case "/person" -> register(Form.inParts(request), response);
                case "/event" -> announce(member(visitor), Form.inParts(request), response);
                default -> throw new Refused(HttpServletResponse.SC_NOT_FOUND, "nothing can be sent there");
            }
        });
    }

    private void attempt(Visitor visitor, HttpServletResponse response, Action deed) throws IOException {
        try {
            deed.run();
        } catch (Refused e) {
            fail(visitor, response, counts.refused, e.status(), e);
        } catch (Conflict e) {
            fail(visitor, response, counts.refused, HttpServletResponse.SC_CONFLICT, e);
        } catch (BackendFailure e) {
            fail(visitor, response, counts.errors, HttpServletResponse.SC_BAD_GATEWAY, e);
        } catch (Unavailable e) {
            fail(visitor, response, counts.errors, HttpServletResponse.SC_SERVICE_UNAVAILABLE, e);
        } catch (RuntimeException e) {
            counts.errors.increment();
            throw e;
        }
    }

    private void home(Visitor visitor, Text page, HttpServletResponse response) throws IOException, Unavailable {
        if (visitor == null) {
            byte[] bytes = home.get(() -> Html.home(page, null, social.upcoming(), List.of()).copy());
            counts.pages.increment();
            Responses.send(response, HTML, bytes, bytes.length);
        } else {
            send(Html.home(page, visitor, social.upcoming(), social.attendedBy(visitor)), response);
        }
    }

    private static <T> T found(T thing) throws Refused {
        if (thing == null) {
            throw new Refused(HttpServletResponse.SC_NOT_FOUND, "nothing has that number");
        }
        return thing;
    }

    private static Visitor member(Visitor visitor) throws Refused {
        if (visitor == null) {
            throw new Refused(HttpServletResponse.SC_FORBIDDEN, "this is for users who have logged in");
        }
        return visitor;
    }

    private void login(Form form, Visitor before, HttpServletRequest request, HttpServletResponse response)
            throws IOException, Refused, Unavailable {
        Visitor visitor = social.login(form.text("user", USER_LETTERS), form.text("password", USER_LETTERS));
        if (visitor == null) {
            send(Html.says(texts.get(), before, "Login failed", "Nobody has that name and password."), response);
            return;
        }
        // Under a new number: whoever knew the one before is not let in with it.
        Sessions.end(request.getSession(false));
        HttpSession session;
        try {
            session = request.getSession();
        } catch (IllegalStateException e) {
            throw new Refused(HttpServletResponse.SC_SERVICE_UNAVAILABLE, "too many users are logged in");
        }
        session.setMaxInactiveInterval(SESSION_TIMEOUT_S);
        session.setAttribute(VISITOR, visitor);
        redirect("/", response);
    }

    private void attend(Visitor visitor, int event, HttpServletResponse response)
            throws IOException, Refused, Unavailable, Conflict {
        int attendees = writes.attend(event, visitor);
        if (attendees < 0) {
            found(null);
        }
        send(Html.attends(texts.get(), visitor, attendees), response);
    }

    private void register(Form form, HttpServletResponse response)
            throws IOException, Refused, Unavailable, BackendFailure, Conflict {
        NewPerson person = form.person();
        Part image = form.file("image");
        Part thumbnail = form.file("thumbnail");
        if (social.isTaken(person.user())) {
            throw new Refused(HttpServletResponse.SC_CONFLICT, "somebody has that name");
        }
        Address address = located(person.address());
        int id = writes.newPersonId();
        // The files come first: who finds the person finds the pictures.
        store.put("/person/" + id + ".jpg", image::getInputStream, image.getSize());
        store.put("/person/" + id + "t.jpg", thumbnail::getInputStream, thumbnail.getSize());
        writes.register(id, person.at(address));
        redirect("/person?id=" + id, response);
    }

    private void announce(Visitor visitor, Form form, HttpServletResponse response)
            throws IOException, Refused, Unavailable, BackendFailure, Conflict {
        NewEvent event = form.event(visitor);
        Part image = form.file("image");
        Part thumbnail = form.file("thumbnail");
        Part document = form.file("document");
        Address address = located(event.address());
        int id = writes.newEventId();
        store.put("/event/" + id + ".jpg", image::getInputStream, image.getSize());
        store.put("/event/" + id + "t.jpg", thumbnail::getInputStream, thumbnail.getSize());
        store.put("/event/" + id + ".pdf", document::getInputStream, document.getSize());
        writes.announce(id, event.at(address));
        redirect("/event?id=" + id, response);
    }

    private Address located(Address address) throws BackendFailure {
        Store.Coordinates place =
                store.locate(address.street1(), address.city(), address.state(), address.zip());
        return address.at(place.latitude(), place.longitude());
    }

    private static Visitor visitor(HttpServletRequest request) {
        return (Visitor) Sessions.get(request.getSession(false), VISITOR);
    }

    private void send(Text page, HttpServletResponse response) throws IOException {
        send(page, HTML, response);
    }

    private void send(Text page, String type, HttpServletResponse response) throws IOException {
        // Before it is sent: who has read it may ask for the counts at once.
        counts.pages.increment();
        Responses.send(response, type, page.bytes(), page.length());
    }

    private void redirect(String to, HttpServletResponse response) {
        counts.pages.increment();
        response.setStatus(HttpServletResponse.SC_FOUND);
        response.setHeader("Location", to);
        response.setContentLength(0);
    }

    private void fail(Visitor visitor, HttpServletResponse response, LongAdder count, int status, Exception why)
            throws IOException {
        count.increment();
        response.setStatus(status);
        Text page = Html.says(texts.get(), visitor, Integer.toString(status), why.getMessage());
        Responses.send(response, HTML, page.bytes(), page.length());
    }
}
