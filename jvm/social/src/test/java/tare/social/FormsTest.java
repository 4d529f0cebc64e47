package tare.social;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static tare.social.Site.all;
import static tare.social.Site.heading;
import static tare.social.Site.location;

import java.net.http.HttpClient;
import java.net.http.HttpResponse;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

class FormsTest {
    private Site site;

    @BeforeEach
    void begin() throws Exception {
        site = new Site();
    }

    @AfterEach
    void end() {
        if (site != null) {
            site.close();
        }
    }

    private HttpResponse<String> send(String path, Map<String, Object> form) throws Exception {
        return site.send(site.user, path, form);
    }

    @Test
    void aNewPersonIsFoundAgain() throws Exception {
        HttpResponse<String> made = send("/person", Site.person("ann"));
        assertEquals(302, made.statusCode(), made.body());
        assertEquals("/person?id=21", location(made));
        String page = site.page("/person?id=21");
        assertEquals("Ann Öz &lt;b&gt;", heading(page));
        assertTrue(page.contains("I am &quot;new&quot; &amp; here"), page);
        assertTrue(page.contains("Köln") && page.contains("(33.0, -177.0)"), page);
        assertEquals("taken", site.get("/person/check?user=ann").body());
        assertArrayEquals(Site.file(671_520, 1), site.bytes("/image/person/21.jpg").body());
        assertArrayEquals(Site.file(5_758, 2), site.bytes("/image/person/21t.jpg").body());
        assertArrayEquals(Site.file(671_520, 1), site.store.kept.get("/3/person/21.jpg"), "in the instance's own tree");
        assertTrue(site.store.located.endsWith("?street=High+Road+1&city=K%C3%B6ln&state=NW&zip=50667"),
                site.store.located);
        assertEquals(302, site.post("/login", "user", "ann", "password", "secret").statusCode());
        assertTrue(site.page("/").contains("<p id=\"user\">Ann Öz &lt;b&gt;</p>"));
        assertEquals(409, send("/person", Site.person("ann")).statusCode());
        assertEquals("21", site.value("SELECT count(*) FROM person"));
        assertEquals(2.0, site.stat("stored_files"));
        try (var left = java.nio.file.Files.list(site.server.folder().resolve("uploads"))) {
            assertEquals(0, left.count(), "nothing stays of what was sent");
        }
    }

    @Test
    void aNewEventIsFoundAgain() throws Exception {
        assertEquals(403, send("/event", Site.event("Party", "tag1")).statusCode());
        site.login(5);
        assertEquals(List.of("4", "24"), all("/event\\?id=([0-9]+)", site.page("/person?id=5")));
        assertTrue(site.page("/tag?name=tag1").contains("<p id=\"hits\">30</p>"));
        site.page("/tag?name=new");
        HttpResponse<String> made = send("/event", Site.event("Party & <more>", " tag1 new\ttag2 new "));
        assertEquals("/event?id=31", location(made), made.body());
        String page = site.page("/event?id=31");
        assertEquals("Party &amp; &lt;more&gt;", heading(page));
        assertTrue(page.contains("<p id=\"attendees\">0</p>\n<p id=\"attend\">yes</p>"), page);
        assertEquals(List.of("tag1", "tag2", "new"), all("/tag\\?name=([a-z0-9]+)", page));
        assertTrue(page.contains("2026-03-01T18:00"), page);
        assertEquals(List.of("31", "4", "24"), all("/event\\?id=([0-9]+)", site.page("/person?id=5")));
        page = site.page("/tag?name=tag1");
        assertTrue(page.contains("<p id=\"hits\">31</p>") && page.indexOf("id=31") < page.indexOf("id=1\""), page);
        assertTrue(site.page("/tag?name=new").contains("<p id=\"hits\">1</p>"));
        assertEquals("31", site.value("SELECT refcount FROM socialeventtag WHERE tag = 'tag1'"));
        assertEquals("1", site.value("SELECT refcount FROM socialeventtag WHERE tag = 'new'"));
        assertArrayEquals(Site.file(129_617, 3), site.bytes("/document/event/31.pdf").body());
        assertEquals("application/pdf", site.bytes("/document/event/31.pdf").headers().firstValue("Content-Type").get());
    }

    @Test
    void theHomePageHasWhatWasAnnounced() throws Exception {
        site.login(5);
        Map<String, Object> form = Site.event("Soon", "tag60");
        form.put("time", "2026-01-01T23:00:00");
        assertEquals(302, send("/event", form).statusCode());
        String page = site.page("/");
        assertEquals("Soon", all("<a href=\"/event\\?id=31\">([^<]*)", page).get(0));
        assertTrue(page.indexOf("id=31") < page.indexOf("id=1\""), page);
    }

    @Test
    void manyAtOnceDoNotGetInEachOthersWay() throws Exception {
        int users = 8;
        int each = 6;
        ExecutorService threads = Executors.newFixedThreadPool(users);
        List<Future<Set<String>>> done = new ArrayList<>();
        for (int i = 0; i < users; i++) {
            int number = i + 1;
            done.add(threads.submit(() -> {
                HttpClient own = Site.user();
                Set<String> places = new HashSet<>();
                synchronized (site) {
                    site.user = own;
                    site.login(number);
                }
                for (int n = 0; n < each; n++) {
                    // The same tags in another order, and a new one that all want.
                    String tags = number % 2 == 0 ? "tag1 tag2 tag3 all" + n : "all" + n + " tag3 tag2 tag1";
                    Map<String, Object> form = Site.event("Event of " + number, tags);
                    form.put("image", Site.file(1_000, number));
                    HttpResponse<String> made = site.send(own, "/event", form);
                    assertEquals(302, made.statusCode(), made.body());
                    places.add(location(made));
                }
                return places;
            }));
        }
        Set<String> places = new HashSet<>();
        for (Future<Set<String>> one : done) {
            places.addAll(one.get());
        }
        threads.shutdown();
        assertEquals(users * each, places.size(), "each has a number of its own");
        assertEquals(Integer.toString(30 + users * each),
                site.value("SELECT refcount FROM socialeventtag WHERE tag = 'tag1'"));
        assertEquals(Integer.toString(users), site.value("SELECT refcount FROM socialeventtag WHERE tag = 'all5'"));
        assertEquals("6", site.value("SELECT count(*) FROM socialeventtag WHERE tag LIKE 'all%'"));
        assertEquals("0", site.value("SELECT count(*) FROM socialeventtag t WHERE refcount <> (SELECT count(*) FROM "
                + "socialeventtag_socialevent s WHERE s.socialeventtagid = t.socialeventtagid) AND tag LIKE 'all%'"));
    }

    @Test
    void whatIsFilledInWronglyIsRefused() throws Exception {
        site.login(1);
        Map<String, Object> wrong = Map.of("user", "x".repeat(61), "password", "", "first", " ", "summary",
                "x".repeat(2_501), "zip", "x".repeat(13), "image", "no file", "thumbnail", new byte[0], "last", "a\0b");
        for (Map.Entry<String, Object> one : wrong.entrySet()) {
            Map<String, Object> form = Site.person("ann");
            form.put(one.getKey(), one.getValue());
            HttpResponse<String> response = send("/person", form);
            assertEquals(400, response.statusCode(), one.getKey());
            assertTrue(response.body().contains("'" + one.getKey() + "'"), response.body());
            form.remove(one.getKey());
            assertEquals(400, send("/person", form).statusCode(), one.getKey());
        }
        for (Object[] one : new Object[][] {{"time", "tomorrow"}, {"time", "-0001-01-01T00:00"}, {"title", ""},
                {"tags", "x".repeat(31)}, {"tags", "a b c d e f g h i j k l m n o p q r s t u"},
                {"document", "text"}}) {
            Map<String, Object> form = Site.event("Party", "tag1");
            form.put((String) one[0], one[1]);
            assertEquals(400, send("/event", form).statusCode(), one[0].toString());
        }
        assertEquals(400, site.post("/person", "user", "ann").statusCode());
        Map<String, Object> long1 = Site.person("ann");
        long1.put("image", Site.file((2 << 20) + 1, 1));
        assertEquals(413, send("/person", long1).statusCode());
        assertEquals("20", site.value("SELECT count(*) FROM person"));
        assertEquals("30", site.value("SELECT count(*) FROM socialevent"));
        assertEquals(0, site.store.kept.size());
        assertEquals(0.0, site.stat("errors"));
    }

    @Test
    void whatFailsHalfWayIsNotThere() throws Exception {
        site.login(1);
        site.store.mood = FakeStore.Mood.FAILS;
        assertEquals(502, send("/person", Site.person("ann")).statusCode());
        site.store.mood = FakeStore.Mood.LOST;
        assertEquals(502, send("/event", Site.event("Party", "new")).statusCode());
        site.store.mood = FakeStore.Mood.WELL;
        assertEquals("free", site.get("/person/check?user=ann").body());
        // The last statement of the transaction fails.
        site.change("ALTER TABLE socialeventtag_socialevent RENAME TO away");
        HttpResponse<String> failed = send("/event", Site.event("Party", "tag1 new"));
        assertEquals(503, failed.statusCode());
        assertTrue(failed.body().contains("socialeventtag_socialevent"), failed.body());
        site.change("ALTER TABLE away RENAME TO socialeventtag_socialevent");
        assertEquals("30", site.value("SELECT count(*) FROM socialevent"));
        assertEquals("30", site.value("SELECT refcount FROM socialeventtag WHERE tag = 'tag1'"));
        assertEquals("0", site.value("SELECT count(*) FROM socialeventtag WHERE tag = 'new'"));
        assertEquals(302, send("/event", Site.event("Party", "tag1 new")).statusCode());
        assertEquals(3.0, site.stat("errors"));
        assertEquals(2.0, site.stat("store_errors"));
        assertEquals(1.0, site.stat("database_errors"));
    }
}
