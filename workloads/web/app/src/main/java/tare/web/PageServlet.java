package tare.web;

import jakarta.servlet.http.Cookie;
import jakarta.servlet.http.HttpServlet;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import jakarta.servlet.http.HttpSession;
import java.io.IOException;
import java.util.concurrent.ThreadLocalRandom;
import tare.common.Refused;
import tare.common.Text;
import tare.common.client.BackendFailure;
import tare.common.server.Responses;
import tare.common.server.Sessions;
import tare.web.backend.Backend;
import tare.web.backend.Reply;

/** Makes pages. */
final class PageServlet extends HttpServlet {
    /** Of the session, on the server or not. */
    static final String COOKIE = "SESSION";

    private static final byte[] FIELDS = Text.of("<table id=\"reply\">\n");
    private static final byte[] ROW = Text.of("<tr><td>");
    private static final byte[] ROW_END = Text.of("</td></tr>\n");
    private static final byte[] TABLE_END = Text.of("</table>\n");
    private static final byte[] FILL = Text.of("<pre>\n");
    private static final byte[] END = Text.of("\n</pre></body></html>\n");
    private static final byte[] LINE =
            Text.of("The quick brown fox jumps over the lazy dog, and packs his box with five dozen liquor jugs.\n");

    private final Pages pages;
    private final Backend backend;
    private final Counts counts;
    private final int sessionTimeoutS;
    /** Filler of the longest page, then the end of all. */
    private final byte[] filler;
    private final ThreadLocal<Text> texts = ThreadLocal.withInitial(Text::new);

    PageServlet(Pages pages, Backend backend, Counts counts, int sessionTimeoutS) {
        this.pages = pages;
        this.backend = backend;
        this.counts = counts;
        this.sessionTimeoutS = sessionTimeoutS;
        filler = new byte[pages.longest() + END.length];
        for (int at = 0; at < pages.longest(); at += LINE.length) {
            System.arraycopy(LINE, 0, filler, at, Math.min(LINE.length, pages.longest() - at));
        }
        System.arraycopy(END, 0, filler, pages.longest(), END.length);
    }

    @Override
    protected void doGet(HttpServletRequest request, HttpServletResponse response) throws IOException {
        try {
            Page page = pages.at(request.getServletPath());
            if (page == null) {
                throw new Refused(HttpServletResponse.SC_NOT_FOUND, "there is no such page");
            }
            make(page, page.values(request.getQueryString()), request, response);
        } catch (Refused e) {
            fail(response, e.status(), e.getMessage());
        } catch (BackendFailure e) {
            fail(response, HttpServletResponse.SC_BAD_GATEWAY, e.getMessage());
        }
    }

    private void make(Page page, String[] values, HttpServletRequest request, HttpServletResponse response)
            throws IOException, Refused, BackendFailure {
        HttpSession session = pages.keepsSessions(page) ? request.getSession(false) : null;
        Visitor visitor = (Visitor) Sessions.get(session, Visitor.NAME);
        String user = page.value(values, Parameter.Shape.USER);
        if (page.role == Page.Role.MEMBER && (visitor == null || !visitor.isMember(user))) {
            throw new Refused(HttpServletResponse.SC_FORBIDDEN, "the page is for users who have logged in");
        }
        Reply reply = backend.ask(page.query(values));
        if (!pages.keepsSessions(page)) {
            name(request, response);
        } else if (visitor == null && page.role != Page.Role.LOGOUT) {
            visitor = new Visitor();
            HttpSession begun = request.getSession();
            begun.setMaxInactiveInterval(sessionTimeoutS);
            begun.setAttribute(Visitor.NAME, visitor);
        }
        Text text = begin(page, reply);
        if (visitor != null) {
            use(visitor, page, values, user, text);
        }
        if (page.role == Page.Role.LOGOUT) {
            Sessions.end(session);
        }
        page.images(text, values);
        // Before it is sent: who has read it may ask for the counts at once.
        counts.pages.increment();
        send(page, text, response);
    }

    /** Where the server keeps nothing of users, they have a name all the same. */
    private static void name(HttpServletRequest request, HttpServletResponse response) {
        Cookie[] cookies = request.getCookies();
        if (cookies != null) {
            for (Cookie cookie : cookies) {
                if (cookie.getName().equals(COOKIE)) {
                    return;
                }
            }
        }
        ThreadLocalRandom random = ThreadLocalRandom.current();
        response.addHeader("Set-Cookie",
                COOKIE + "=" + String.format("%016X%016X", random.nextLong(), random.nextLong())
                        + "; Path=/; HttpOnly");
    }

    private Text begin(Page page, Reply reply) {
        byte[] from = reply.bytes();
        Text text = texts.get().clear().put(page.head);
        text.escaped(from, reply.begin(0), reply.end(0)).put(page.title).put(FIELDS);
        for (int i = 1; i < reply.fields(); i++) {
            text.put(ROW).escaped(from, reply.begin(i), reply.end(i)).put(ROW_END);
        }
        return text.put(TABLE_END);
    }

    private static void use(Visitor visitor, Page page, String[] values, String user, Text text) {
        if (page.role == Page.Role.LOGIN) {
            visitor.login(user);
        }
        visitor.saw(page, values);
        visitor.show(text);
        visitor.after(page);
    }

    private void send(Page page, Text text, HttpServletResponse response) throws IOException {
        text.put(FILL);
        int rest = Math.max(page.least - text.length(), END.length);
        response.setContentType("text/html");
        response.setContentLength(text.length() + rest);
        var out = response.getOutputStream();
        out.write(text.bytes(), 0, text.length());
        out.write(filler, filler.length - rest, rest);
    }

    private void fail(HttpServletResponse response, int status, String why) throws IOException {
        counts.errors.increment();
        Text body = texts.get().clear().put("<!DOCTYPE html><html><head><title>").put(status)
                .put("</title></head><body>").escaped(why).put("</body></html>\n");
        Responses.send(response, status, "text/html;charset=utf-8", body.copy());
    }
}
