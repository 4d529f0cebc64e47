package tare.social;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.net.http.HttpResponse;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import tare.social.data.Unavailable;

class FailuresTest {
    /** What an answer must not take: far more than any timeout here. */
    private static final int HANG_S = 60;

    private static HttpResponse<String> soon(Site site, String path) throws Exception {
        CompletableFuture<HttpResponse<String>> answer = CompletableFuture.supplyAsync(() -> {
            try {
                return site.get(path);
            } catch (Exception e) {
                throw new IllegalStateException(e);
            }
        });
        return answer.get(HANG_S, TimeUnit.SECONDS);
    }

    @Test
    void itDoesNotBeginWithoutADatabase() throws Exception {
        Postgres postgres = Postgres.needed();
        Main.quiet();
        try (Proxy nobody = new Proxy(postgres.port())) {
            nobody.cut();
            String why = assertThrows(Unavailable.class, () -> Main.start(Site.options(nobody.port(), "x", 9))).getMessage();
            assertTrue(why.startsWith("cannot reach the database 127.0.0.1:" + nobody.port() + "/x as user tare: "), why);
            assertTrue(why.contains("--database"), why);
        }
        String why = assertThrows(Unavailable.class, () -> Main.start(Site.options(postgres.port(), "nothing", 9)))
                .getMessage();
        assertTrue(why.contains("\"nothing\" does not exist"), why);
        why = assertThrows(Unavailable.class, () -> Main.start(Site.options(postgres.port(), postgres.empty(), 9)))
                .getMessage();
        assertTrue(why.contains("\"id_gen\" does not exist") && why.endsWith("load the tables first"), why);
    }

    @Test
    void aDatabaseThatIsGoneIsReportedAndComesBack() throws Exception {
        try (Proxy proxy = new Proxy(Postgres.needed().port()); Site site = new Site(proxy.port(), Site.SHORT)) {
            assertEquals(200, site.get("/event?id=1").statusCode());
            proxy.cut();
            for (String path : List.of("/event?id=2", "/", "/tag?name=tag1", "/person/check?user=x")) {
                HttpResponse<String> failed = soon(site, path);
                assertEquals(503, failed.statusCode(), path);
                assertTrue(failed.body().contains("the database 127.0.0.1:" + proxy.port()), failed.body());
            }
            assertEquals(200, site.get("/event?id=1").statusCode(), "it is among the objects that are kept");
            assertEquals(200, site.get("/static/site/00.js").statusCode());
            assertEquals(4.0, site.stat("errors"));
            assertEquals(4.0, site.stat("database_errors"));
            proxy.mend();
            long until = System.nanoTime() + TimeUnit.SECONDS.toNanos(HANG_S);
            while (site.get("/event?id=2").statusCode() != 200) {
                assertTrue(System.nanoTime() < until, "it does not come back");
            }
        }
    }

    @Test
    void aDatabaseThatSaysNothingIsNotWaitedForForever() throws Exception {
        try (Proxy proxy = new Proxy(Postgres.needed().port());
                Site site = new Site(proxy.port(), Site.SHORT, "--pool", "1")) {
            assertEquals(200, site.get("/event?id=1").statusCode());
            proxy.silence();
            // The first waits for its statement, the others for the connection.
            List<CompletableFuture<HttpResponse<String>>> all = new ArrayList<>();
            for (int i = 0; i < 4; i++) {
                int id = 2 + i;
                all.add(CompletableFuture.supplyAsync(() -> {
                    try {
                        return site.get("/event?id=" + id);
                    } catch (Exception e) {
                        throw new IllegalStateException(e);
                    }
                }));
            }
            for (CompletableFuture<HttpResponse<String>> one : all) {
                assertEquals(503, one.get(HANG_S, TimeUnit.SECONDS).statusCode());
            }
            assertEquals(4.0, site.stat("errors"));
            assertTrue(site.stat("pool_waits") >= 3);
            assertTrue(site.stat("pool_wait_seconds") > 0);
        }
    }

    @Test
    void aConnectionThatWasIdleIsUsedAsItIs() throws Exception {
        try (Proxy proxy = new Proxy(Postgres.needed().port());
                Site site = new Site(proxy.port(), Timeouts.USUAL, "--pool", "1")) {
            for (int i = 0; i < 5; i++) {
                assertEquals("free", site.get("/person/check?user=x").body());
            }
            // Longer than the pool's own limit.
            Thread.sleep(700);
            int before = proxy.asked.get();
            assertEquals("free", site.get("/person/check?user=x").body());
            assertEquals(1, proxy.asked.get() - before, "nothing but the statement");
        }
    }

    @Test
    void connectionsThatEndedWhileIdleFailOneRequest() throws Exception {
        try (Proxy proxy = new Proxy(Postgres.needed().port());
                Site site = new Site(proxy.port(), Timeouts.USUAL, "--pool", "4")) {
            long until = System.nanoTime() + TimeUnit.SECONDS.toNanos(HANG_S);
            while (site.stat("pool_connections") < 4) {
                assertTrue(System.nanoTime() < until, "it does not fill");
                Thread.sleep(10);
            }
            proxy.cut();
            proxy.mend();
            for (int i = 0; i < 8; i++) {
                site.get("/person/check?user=x");
            }
            assertTrue(site.stat("errors") <= 1, "errors: " + site.stat("errors"));
            assertEquals(200, site.get("/event?id=2").statusCode());
        }
    }

    @Test
    void aDatabaseThatIsStartedAgainFailsOneRequest() throws Exception {
        try (Site site = new Site("--pool", "4")) {
            assertEquals("free", site.get("/person/check?user=x").body());
            long until = System.nanoTime() + TimeUnit.SECONDS.toNanos(HANG_S);
            while (site.stat("pool_connections") < 4) {
                assertTrue(System.nanoTime() < until, "it does not fill");
                Thread.sleep(10);
            }
            site.postgres.restart();
            // It tells each connection why it ends it: that is another error than one that is broken.
            for (int i = 0; i < 8; i++) {
                site.get("/person/check?user=x");
            }
            assertTrue(site.stat("errors") <= 1, "errors: " + site.stat("errors"));
            assertEquals("taken", site.get("/person/check?user=user1").body());
            assertEquals(302, site.send(site.user, "/person", Site.person("ann")).statusCode());
            assertEquals("21", site.value("SELECT count(*) FROM person"));
        }
    }

    @Test
    void whatMayHaveBeenWrittenIsReadAgain() throws Exception {
        try (Proxy proxy = new Proxy(Postgres.needed().port()); Site site = new Site(proxy.port(), Site.SHORT)) {
            site.login(9);
            String before = site.page("/event?id=1");
            assertTrue(before.contains("<p id=\"attend\">yes</p>"), before);
            proxy.loseAnswerTo("COMMIT");
            assertEquals(503, site.post("/event/attend", "id", "1").statusCode());
            proxy.mend();
            assertEquals("1", site.value("SELECT count(*) FROM person_socialevent WHERE username = 'user9' "
                    + "AND socialeventid = 1"), "it was written");
            long until = System.nanoTime() + TimeUnit.SECONDS.toNanos(HANG_S);
            while (site.get("/event?id=1").statusCode() != 200) {
                assertTrue(System.nanoTime() < until, "it does not come back");
            }
            String after = site.page("/event?id=1");
            assertTrue(after.contains("<p id=\"attend\">no</p>"), after);
        }
    }

    @Test
    void aStoreThatIsGoneIsReportedAndComesBack() throws Exception {
        try (Site site = new Site()) {
            site.store.kept.put("/3/person/1.jpg", Site.file(1_000, 1));
            assertEquals(200, site.get("/image/person/1.jpg").statusCode());
            int port = site.store.port();
            site.store.close();
            HttpResponse<String> failed = soon(site, "/image/person/1.jpg");
            assertEquals(502, failed.statusCode());
            assertTrue(failed.body().contains("cannot get /3/person/1.jpg from the file store 127.0.0.1:" + port + ": "),
                    failed.body());
            failed = site.send(site.user, "/person", Site.person("ann"));
            assertEquals(502, failed.statusCode());
            assertTrue(failed.body().contains("cannot find a place with the geocoder of the file store"), failed.body());
            assertEquals(200, site.get("/").statusCode());
            assertEquals(2.0, site.stat("errors"));
            assertEquals(2.0, site.stat("store_errors"));
            try (FakeStore again = new FakeStore(port)) {
                again.kept.put("/3/person/1.jpg", Site.file(1_000, 2));
                assertArrayEquals(Site.file(1_000, 2), site.bytes("/image/person/1.jpg").body());
            }
        }
    }

    @Test
    void aStoreThatDoesBadlyIsReported() throws Exception {
        try (Site site = new Site(Postgres.needed().port(), Site.SHORT)) {
            site.store.mood = FakeStore.Mood.SILENT;
            assertEquals(502, soon(site, "/image/person/1.jpg").statusCode());
            site.store.mood = FakeStore.Mood.FAILS;
            HttpResponse<String> failed = site.get("/document/event/1.pdf");
            assertEquals(502, failed.statusCode());
            assertTrue(failed.body().contains("status 500"), failed.body());
            site.store.mood = FakeStore.Mood.STOPS;
            // Its length was promised: nothing but the end of the connection can tell.
            assertThrows(IOException.class, () -> site.get("/image/event/1.jpg"));
            site.store.mood = FakeStore.Mood.WELL;
            site.store.kept.put("/3/event/1.jpg", Site.file(669_128, 1));
            assertArrayEquals(Site.file(669_128, 1), site.bytes("/image/event/1.jpg").body());
            assertEquals(3.0, site.stat("errors"));
            assertEquals(3.0, site.stat("store_errors"));
            assertEquals(669_128.0, site.stat("stored_bytes"));
        }
    }

    @Test
    void connectionsToTheStoreAreKept() throws Exception {
        try (Site site = new Site()) {
            site.store.kept.put("/3/event/1t.jpg", Site.file(5_895, 1));
            for (int i = 0; i < 20; i++) {
                assertArrayEquals(Site.file(5_895, 1), site.bytes("/image/event/1t.jpg").body());
                assertEquals(404, site.get("/image/event/2t.jpg").statusCode());
            }
            assertEquals(1, site.store.connections.size());
            assertEquals(40.0, site.stat("store_calls"));
            assertEquals(20.0, site.stat("refused"));
        }
    }
}
