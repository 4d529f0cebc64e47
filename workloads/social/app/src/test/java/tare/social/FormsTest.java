package tare.social;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static tare.social.Site.all;
import static tare.social.Site.heading;
import static tare.social.Site.location;

import java.net.InetAddress;
import java.net.Socket;
import java.net.http.HttpClient;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.sql.Connection;
import java.sql.Statement;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

class FormsTest extends OnSite {
    private HttpResponse<String> send(String path, Map<String, Object> form) throws Exception {
        return site.send(site.user, path, form);
    }

    /** Files of what is on its way. */
    private long uploads() throws Exception {
        try (var left = Files.list(site.server.folder().resolve("uploads"))) {
            return left.count();
        }
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
        assertEquals(0, uploads(), "nothing stays of what was sent");
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
        long1.put("image", Site.file(1_343_041, 1));
        HttpResponse<String> refused = send("/person", long1);
        assertEquals(413, refused.statusCode(), "the store would not take it");
        assertTrue(refused.body().contains("1343040 in a file"), refused.body());
        Map<String, Object> many = Site.person("ann");
        for (int i = 0; i < 50; i++) {
            many.put("more" + i, "x");
        }
        refused = send("/person", many);
        assertEquals(413, refused.statusCode());
        assertTrue(refused.body().contains("50 fields"), refused.body());
        assertEquals("20", site.value("SELECT count(*) FROM person"));
        assertEquals("30", site.value("SELECT count(*) FROM socialevent"));
        assertEquals(0, site.store.kept.size());
        long1.put("image", Site.file(1_343_040, 1));
        assertEquals(302, send("/person", long1).statusCode());
        assertEquals(0.0, site.stat("errors"));
    }

    @Test
    void whatIsCutOffLeavesNothing() throws Exception {
        String head = "POST /person HTTP/1.1\r\nHost: x\r\nContent-Type: multipart/form-data; boundary=limit\r\n"
                + "Content-Length: 1000000\r\n\r\n--limit\r\nContent-Disposition: form-data; name=\"image\"; "
                + "filename=\"file\"\r\n\r\n" + "x".repeat(300_000);
        for (int i = 0; i < 3; i++) {
            try (Socket socket = new Socket(InetAddress.getLoopbackAddress(), site.server.port())) {
                socket.getOutputStream().write(head.getBytes(StandardCharsets.US_ASCII));
                socket.shutdownOutput();
                // Whatever it says, it ends.
                socket.getInputStream().readAllBytes();
            }
        }
        // The container clears up once the answer is out.
        long until = System.nanoTime() + TimeUnit.SECONDS.toNanos(60);
        while (site.stat("refused") < 3 || uploads() > 0) {
            assertTrue(System.nanoTime() < until, site.stat("refused") + " refused, " + uploads() + " files stay");
            Thread.sleep(10);
        }
        assertEquals(0, site.store.kept.size());
        assertEquals(0.0, site.stat("errors"));
    }

    @Test
    void aNameThatSomebodyElseTakesMeanwhileIsRefused() throws Exception {
        try (Connection other = site.postgres.connect(site.database); Statement statement = other.createStatement()) {
            other.setAutoCommit(false);
            statement.execute("INSERT INTO person SELECT 1000, 'ann', password, firstname, lastname, email, telephone, "
                    + "timezone, summary, '', '', 1 FROM person WHERE userid = 1");
            assertEquals("free", site.get("/person/check?user=ann").body(), "nobody sees it yet");
            ExecutorService thread = Executors.newSingleThreadExecutor();
            Future<HttpResponse<String>> made = thread.submit(() -> send("/person", Site.person("ann")));
            long until = System.nanoTime() + TimeUnit.SECONDS.toNanos(60);
            while (site.value("SELECT count(*) FROM pg_locks WHERE NOT granted").equals("0")) {
                assertTrue(System.nanoTime() < until && !made.isDone(), "it does not wait for the other");
                Thread.sleep(10);
            }
            other.commit();
            HttpResponse<String> refused = made.get();
            assertEquals(409, refused.statusCode(), refused.body());
            thread.shutdown();
        }
        assertEquals("21", site.value("SELECT count(*) FROM person"));
        assertEquals("50", site.value("SELECT count(*) FROM address"), "nothing of it is there");
        assertEquals(0.0, site.stat("errors"));
    }

    @Test
    void tagsAreTakenInTheirOrderWhetherTheyAreNewOrNot() throws Exception {
        site.login(5);
        ExecutorService thread = Executors.newSingleThreadExecutor();
        try (Connection other = site.postgres.connect(site.database); Statement statement = other.createStatement()) {
            other.setAutoCommit(false);
            statement.execute("INSERT INTO socialeventtag VALUES (1000, 'new', 1)");
            Future<HttpResponse<String>> made = thread.submit(() -> send("/event", Site.event("Party", "tag1 new")));
            long until = System.nanoTime() + TimeUnit.SECONDS.toNanos(60);
            while (site.value("SELECT count(*) FROM pg_locks WHERE NOT granted").equals("0")) {
                assertTrue(System.nanoTime() < until && !made.isDone(), "it does not wait for the other");
                Thread.sleep(10);
            }
            // Else each would wait for the other now.
            statement.execute("UPDATE socialeventtag SET refcount = refcount + 1 WHERE socialeventtagid IN "
                    + "(SELECT socialeventtagid FROM socialeventtag WHERE tag = 'tag1' FOR UPDATE NOWAIT)");
            other.commit();
            assertEquals(302, made.get().statusCode(), made.get().body());
        } finally {
            thread.shutdown();
        }
        assertEquals("2", site.value("SELECT refcount FROM socialeventtag WHERE tag = 'new'"));
        assertEquals("32", site.value("SELECT refcount FROM socialeventtag WHERE tag = 'tag1'"));
        assertEquals(0.0, site.stat("database_errors"));
    }

    @Test
    void whoSaysAttendAtOnceIsCountedOnce() throws Exception {
        int users = 6;
        String before = all("<p id=\"attendees\">([0-9]+)", site.page("/event?id=1")).get(0);
        List<HttpClient> clients = new ArrayList<>();
        for (int number = 9; number < 9 + users; number++) {
            site.user = Site.user();
            clients.add(site.user);
            site.login(number);
        }
        ExecutorService threads = Executors.newFixedThreadPool(2 * users);
        List<Future<String>> seen = new ArrayList<>();
        for (int i = 0; i < 2 * users; i++) {
            HttpClient own = clients.get(i % users);
            seen.add(threads.submit(() -> {
                HttpResponse<String> said = site.post(own, "/event/attend", "id", "1");
                assertEquals(200, said.statusCode(), said.body());
                // The next request sees it, whoever reads and writes meanwhile.
                return site.get(own, "/event?id=1").body();
            }));
        }
        for (Future<String> one : seen) {
            String page = one.get();
            assertTrue(page.contains("<p id=\"attend\">no</p>"), page);
        }
        threads.shutdown();
        String rows = site.value("SELECT count(*) FROM person_socialevent WHERE socialeventid = 1");
        assertEquals(Integer.parseInt(before) + users, Integer.parseInt(rows));
        assertEquals(rows, all("<p id=\"attendees\">([0-9]+)", site.page("/event?id=1")).get(0));
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
