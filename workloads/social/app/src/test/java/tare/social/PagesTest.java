package tare.social;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static tare.social.Site.all;
import static tare.social.Site.heading;

import java.net.http.HttpResponse;
import java.util.List;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

class PagesTest extends OnSite {
    private static final String EVENTS = "<a href=\"/event\\?id=([0-9]+)\">";
    private static final String PEOPLE = "<a href=\"/person\\?id=([0-9]+)\">";
    private static final String IMAGES = "<img src=\"([^\"]*)\">";

    private static List<String> numbers(int from, int to) {
        return IntStream.rangeClosed(from, to).mapToObj(Integer::toString).toList();
    }

    @Test
    void homeHasWhatComesNextAndTheTagsThatAreUsedMost() throws Exception {
        String page = site.page("/");
        assertEquals("Upcoming events", heading(page));
        assertTrue(page.contains("<p id=\"user\">-</p>"), page);
        assertEquals(numbers(1, 10), all(EVENTS, page));
        assertEquals(numbers(1, 10).stream().map(n -> "/image/event/" + n + "t.jpg").toList(), all(IMAGES, page));
        assertTrue(page.contains("<a href=\"/event?id=3\">Event 3</a>"), page);
        List<String> tags = all("<a href=\"/tag\\?name=tag[0-9]+\">([^<]*)</a>", page);
        assertEquals(50, tags.size());
        assertEquals(List.of("tag1", "tag2", "tag3"), tags.subList(0, 3));
    }

    @Test
    void aUserLogsInAndOut() throws Exception {
        HttpResponse<String> wrong = site.post("/login", "user", "user7", "password", "8");
        assertEquals(200, wrong.statusCode());
        assertEquals("Login failed", heading(wrong.body()));
        assertTrue(site.page("/").contains("<p id=\"user\">-</p>"));
        site.login(7);
        String page = site.page("/");
        assertTrue(page.contains("<p id=\"user\">First7 Last7</p>"), page);
        // Of people 1 to 5, N mod 5 + 1 to + 4; 7 attends what has N mod 5 = 3 or 4.
        assertEquals(15, all(EVENTS, page).size(), page);
        assertEquals(List.of("3", "4", "8", "9", "13"), all(EVENTS, page).subList(10, 15));
        assertEquals(10, all(IMAGES, page).size());
        site.login(9);
        assertTrue(site.page("/").contains("<p id=\"user\">First9 Last9</p>"));
        assertEquals(302, site.get("/logout").statusCode());
        assertTrue(site.page("/").contains("<p id=\"user\">-</p>"));
    }

    @Test
    void theOldSessionIsNoGoodAfterALogin() throws Exception {
        site.login(7);
        String before = site.post("/login", "user", "user7", "password", "7").headers().firstValue("Set-Cookie").orElse("");
        String after = site.post("/login", "user", "user7", "password", "7").headers().firstValue("Set-Cookie").orElse("");
        assertTrue(before.startsWith("SESSION=") && after.startsWith("SESSION="), before + after);
        site.user = java.net.http.HttpClient.newHttpClient();
        String page = new String(site.bytes("/", "Cookie", before.substring(0, before.indexOf(';'))).body());
        assertTrue(page.contains("<p id=\"user\">-</p>"), page);
        page = new String(site.bytes("/", "Cookie", after.substring(0, after.indexOf(';'))).body());
        assertTrue(page.contains("<p id=\"user\">First7 Last7</p>"), page);
    }

    @Test
    void aTagHasItsNewestEvents() throws Exception {
        String page = site.page("/tag?name=tag2");
        assertEquals("tag2", heading(page));
        assertTrue(page.contains("<p id=\"hits\">15</p>"), page);
        assertEquals(List.of("2", "4", "6", "8", "10", "12", "14", "16", "18", "20"), all(EVENTS, page));
        assertEquals(10, all(IMAGES, page).size());
        page = site.page("/tag?name=tag10");
        assertTrue(page.contains("<p id=\"hits\">3</p>"), page);
        for (String none : List.of("tag60", "nobody", "'%20OR%20''='", "%22%3Cb%3E")) {
            assertTrue(site.page("/tag?name=" + none).contains("<p id=\"hits\">0</p>"));
        }
        assertEquals("&quot;&lt;b&gt;", heading(site.page("/tag?name=%22%3Cb%3E")));
    }

    @Test
    void anEventHasAllThatBelongsToIt() throws Exception {
        String page = site.page("/event?id=6");
        assertEquals("Event 6", heading(page));
        assertTrue(page.contains("<p id=\"attendees\">4</p>\n<p id=\"attend\">no</p>"), page);
        assertEquals(List.of("7", "2", "3", "4", "5"), all(PEOPLE, page));
        assertEquals(List.of("/image/event/6.jpg", "/image/person/7t.jpg", "/image/person/2t.jpg",
                "/image/person/3t.jpg"), all(IMAGES, page));
        assertTrue(page.contains("<a href=\"/document/event/6.pdf\">"), page);
        assertEquals(List.of("tag1", "tag2", "tag3", "tag6"), all("<a href=\"/tag\\?name=(tag[0-9]+)\">", page));
        for (String part : List.of("Long 6", "Comment on 6", "street 26", "12.5, -7.25", "First7 Last7")) {
            assertTrue(page.contains(part), page);
        }
    }

    @Test
    void aUserSaysThatTheyWillAttend() throws Exception {
        assertEquals(403, site.post("/event/attend", "id", "6").statusCode());
        site.login(9);
        assertTrue(site.page("/event?id=6").contains("<p id=\"attend\">yes</p>"));
        assertEquals(10, all(EVENTS, site.page("/")).size(), "they attend nothing yet");
        HttpResponse<String> said = site.post("/event/attend", "id", "6");
        assertEquals(200, said.statusCode());
        assertEquals("<p id=\"attendees\">5</p><a href=\"/person?id=9\">First9 Last9</a>", said.body());
        String page = site.page("/event?id=6");
        assertTrue(page.contains("<p id=\"attendees\">5</p>\n<p id=\"attend\">no</p>"), page);
        assertTrue(all(PEOPLE, page).contains("9"), page);
        assertEquals(List.of("6"), all(EVENTS, site.page("/")).subList(10, 11), "it is what they attend");
        assertTrue(site.post("/event/attend", "id", "6").body().contains(">5<"), "once is enough");
        assertEquals(404, site.post("/event/attend", "id", "99").statusCode());
        assertEquals("1", site.value("SELECT count(*) FROM person_socialevent WHERE username = 'user9' "
                + "AND socialeventid = 6"));
    }

    @Test
    void aPersonHasFriendsAndEvents() throws Exception {
        String page = site.page("/person?id=5");
        assertEquals("First5 Last5", heading(page));
        assertEquals(List.of("/image/person/5.jpg"), all(IMAGES, page));
        assertEquals(List.of("6", "7", "8"), all(PEOPLE, page));
        assertEquals(List.of("4", "24"), all(EVENTS, page), "the newest first");
        assertTrue(page.contains("Summary of 5"), page);
    }

    @Test
    void formsAreThere() throws Exception {
        assertEquals("New person", heading(site.page("/person/new")));
        assertEquals(403, site.get("/event/new").statusCode());
        site.login(1);
        assertEquals("New event", heading(site.page("/event/new")));
        assertEquals("taken", site.get("/person/check?user=user1").body());
        assertEquals("free", site.get("/person/check?user=user21").body());
        assertEquals("free", site.get("/person/check?user='%20OR%20''='").body());
    }

    @Test
    void whatIsTextIsNoMarkup() throws Exception {
        site.change("UPDATE socialevent SET title = '<script>&\"ü€\uD83D\uDE00<', description = '<i>' WHERE socialeventid = 1");
        String safe = "&lt;script&gt;&amp;&quot;ü€\uD83D\uDE00&lt;";
        String page = site.page("/event?id=1");
        assertEquals(safe, heading(page));
        assertTrue(page.contains("<p>&lt;i&gt;</p>"), page);
        assertTrue(site.page("/").contains("<a href=\"/event?id=1\">" + safe + "</a>"));
        assertEquals(404, site.get("/%3Cscript%3E").statusCode());
    }

    @Test
    void whatMakesNoSenseIsRefused() throws Exception {
        for (String path : List.of("/event", "/event?id=", "/event?id=0", "/event?id=-1", "/event?id=x",
                "/event?id=99999999999", "/event?id=1%20OR%201=1", "/person?id=1.0", "/tag", "/tag?name=",
                "/tag?name=a%00", "/tag?name=" + "x".repeat(31), "/person/check?user=" + "x".repeat(61))) {
            HttpResponse<String> response = site.get(path);
            assertEquals(400, response.statusCode(), path);
            assertEquals("400", heading(response.body()));
        }
        for (String path : List.of("/event?id=31", "/person?id=21", "/nothing", "/event/", "/static/",
                "/static/site/29.gif", "/static/../uploads", "/image/person/0.jpg", "/image/person/1.png",
                "/image/event/1.pdf", "/image/1.jpg", "/document/person/1.pdf", "/image/person/21.jpg")) {
            assertEquals(404, site.get(path).statusCode(), path);
        }
        assertEquals(400, site.post("/login", "user", "user1").statusCode());
        assertEquals(404, site.post("/nothing").statusCode());
        assertEquals(413, site.post("/login", "user", "x".repeat(100_000), "password", "1").statusCode());
        assertFalse(site.get("/event?id=0").body().contains("Exception"));
        assertEquals(0.0, site.stat("errors"));
        assertTrue(site.stat("refused") >= 30);
    }
}
