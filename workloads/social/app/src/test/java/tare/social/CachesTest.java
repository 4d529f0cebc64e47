package tare.social;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import org.junit.jupiter.api.Test;

class CachesTest {
    private static final String SOON = "UPDATE socialevent SET eventtimestamp = '2026-01-01T20:00' WHERE socialeventid = 30";

    @Test
    void theAnonymousHomePageIsKept() throws Exception {
        try (Site site = new Site("--home-ttl", "3600")) {
            String before = site.page("/");
            site.change(SOON);
            assertEquals(before, site.page("/"));
            assertEquals(1.0, site.stat("home_hits"));
            site.login(1);
            assertTrue(site.page("/").contains("/event?id=30"), "that of users is not");
        }
        try (Site site = new Site("--home-ttl", "0")) {
            assertFalse(site.page("/").contains("/event?id=30"));
            site.change(SOON);
            assertTrue(site.page("/").contains("/event?id=30"));
            assertEquals(0.0, site.stat("home_hits"));
        }
    }

    @Test
    void objectsAreKeptUntilTheyChange() throws Exception {
        try (Site site = new Site()) {
            String before = site.page("/event?id=1");
            double calls = site.stat("database_calls");
            site.change("UPDATE socialevent SET title = 'Changed' WHERE socialeventid = 1");
            assertEquals(before, site.page("/event?id=1"));
            assertEquals(calls, site.stat("database_calls"));
            assertEquals(1.0, site.stat("cache_hits"));
            assertTrue(site.stat("cache_bytes") > 500);
            site.login(9);
            site.post("/event/attend", "id", "1");
            assertEquals("Changed", Site.heading(site.page("/event?id=1")));
        }
        try (Site site = new Site("--object-ttl", "0")) {
            site.page("/event?id=1");
            site.change("UPDATE socialevent SET title = 'Changed' WHERE socialeventid = 1");
            assertEquals("Changed", Site.heading(site.page("/event?id=1")));
        }
    }

    @Test
    void aPageAsksTheDatabaseSeldom() throws Exception {
        try (Site site = new Site("--object-ttl", "0", "--home-ttl", "0")) {
            site.login(6);
            Object[][] most = {{"/event?id=6", 4}, {"/person?id=6", 3}, {"/tag?name=tag1", 2}, {"/", 3}};
            for (Object[] one : most) {
                double before = site.stat("database_calls");
                site.page((String) one[0]);
                assertEquals(((Integer) one[1]).doubleValue(), site.stat("database_calls") - before, (String) one[0]);
            }
        }
    }

    private static byte[] expected(String address, int length) {
        long hash = 0xcbf2_9ce4_8422_2325L;
        for (byte one : address.getBytes(StandardCharsets.US_ASCII)) {
            hash = (hash ^ one) * 0x0000_0100_0000_01b3L;
        }
        StringBuilder text = new StringBuilder();
        for (int block = 0; text.length() < length; block++) {
            text.append(String.format("<tare %016x %07x>", hash, block)).append('\n');
            while (text.length() < length && text.length() % 4_096 != 0) {
                text.append('.');
            }
        }
        return text.substring(0, length).getBytes(StandardCharsets.US_ASCII);
    }

    @Test
    void staticFilesAreServedOnce() throws Exception {
        try (Site site = new Site()) {
            Object[][] files = {{"/static/site/00.js", 12_288, "text/javascript"},
                {"/static/site/26.css", 6_144, "text/css"}, {"/static/site/28.gif", 1_536, "image/gif"},
                {"/static/home/03.gif", 1_536, "image/gif"}, {"/static/tag_search/00.js", 12_288, "text/javascript"},
                {"/static/event_detail/08.gif", 1_536, "image/gif"},
                {"/static/person_detail/00.js", 12_288, "text/javascript"},
                {"/static/add_person/01.css", 6_144, "text/css"}, {"/static/add_event/01.css", 6_144, "text/css"}};
            for (Object[] file : files) {
                String address = (String) file[0];
                HttpResponse<byte[]> response = site.bytes(address);
                assertArrayEquals(expected(address, (Integer) file[1]), response.body(), address);
                assertEquals(file[2], response.headers().firstValue("Content-Type").orElse(""));
                String changed = response.headers().firstValue("Last-Modified").orElse("");
                response = site.bytes(address, "If-Modified-Since", changed);
                assertEquals(304, response.statusCode());
                assertEquals(0, response.body().length);
            }
            for (String none : new String[] {"/static/site/29.gif", "/static/home/04.gif", "/static/login/00.js"}) {
                assertEquals(404, site.get(none).statusCode(), none);
            }
            assertEquals(2.0 * files.length, site.stat("files"));
            assertEquals(files.length, site.stat("not_modified"));
            assertTrue(Files.isRegularFile(site.server.folder().resolve("static/site/00.js")));
            site.server.close();
            assertFalse(Files.exists(site.server.folder()), "nothing stays");
            site.server.close();
            assertFalse(Files.exists(site.server.folder()), "nor comes again");
        }
    }
}
