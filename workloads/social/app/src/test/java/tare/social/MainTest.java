package tare.social;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.BufferedReader;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import tare.common.InvalidInput;
import tare.testing.Programs;

class MainTest {
    @TempDir
    Path folder;

    private static String refusal(String... more) {
        List<String> words = new ArrayList<>(List.of("--listen", "127.0.0.1", "--files", "127.0.0.1:9"));
        words.addAll(Arrays.asList(more));
        return assertThrows(InvalidInput.class, () -> Options.parse(words)).getMessage();
    }

    @Test
    void badOptionsAreReported() throws Exception {
        String[] database = {"--database", "127.0.0.1:5432/social1", "--user", "tare"};
        assertTrue(assertThrows(InvalidInput.class, () -> Options.parse(List.of())).getMessage().contains("--listen is missing"));
        assertTrue(refusal("--listen", "127.0.0.1").contains("twice"));
        assertTrue(refusal("--port").contains("needs a value"));
        assertTrue(refusal("--colour", "red").contains("unknown argument '--colour'"));
        assertTrue(refusal().contains("--database is missing"));
        assertTrue(refusal(database[0], database[1]).contains("--user is missing"));
        String[][] wrong = {{"--port", "65536", "from 0 to 65535, not '65536'"}, {"--threads", "many", "not 'many'"},
            {"--instance", "0", "from 1 to"}, {"--pool", "0", "from 1 to"}, {"--home-ttl", "-1", "from 0 to"},
            {"--object-ttl", "1.5", "not '1.5'"}};
        for (String[] one : wrong) {
            String why = refusal(database[0], database[1], database[2], database[3], one[0], one[1]);
            assertTrue(why.contains(one[0]) && why.contains(one[2]), why);
        }
        for (String bad : List.of("127.0.0.1:5432", "localhost:5432/x", "/x", "127.0.0.1:0/x", "127.0.0.1:1/",
                "127.0.0.1:1/a?b=c", "127.0.0.1:1/a/b")) {
            assertTrue(refusal("--database", bad, "--user", "tare").contains("--database takes"), bad);
        }
        assertTrue(refusal("--database", "127.0.0.1:1/x", "--user", "a b").contains("--user takes"));
        assertNotNull(Options.parse(List.of("--listen", "::1", "--files", "[::1]:80", "--database", "[::1]:5432/x",
                "--user", "tare")));
    }

    private Process run(List<String> words) throws Exception {
        return Programs.start("tare.social.Main",
                List.of("-XX:TieredStopAtLevel=1", "-Xss192k", "-Djava.io.tmpdir=" + folder), words);
    }

    @Test
    void theProgramSaysHowItIs() throws Exception {
        Process bad = run(List.of("--listen", "127.0.0.1"));
        assertEquals("tare-social: --database is missing; try --help", Programs.error(bad));
        assertEquals(2, bad.waitFor());
        int closed;
        try (ServerSocket taken = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
            closed = taken.getLocalPort();
        }
        Process without = run(Site.options(closed, "x", 9));
        assertTrue(Programs.error(without).startsWith("tare-social: cannot reach the database 127.0.0.1:" + closed + "/x"));
        assertEquals(1, without.waitFor());
    }

    @Test
    void theProgramServesUntilItIsEnded() throws Exception {
        Postgres postgres = Postgres.needed();
        String database = postgres.database();
        try (ServerSocket taken = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
            List<String> words = Site.options(postgres.port(), database, 9);
            words.set(words.indexOf("--port") + 1, Integer.toString(taken.getLocalPort()));
            Process late = run(words);
            String why = Programs.error(late);
            assertTrue(why.startsWith("tare-social: cannot listen on 127.0.0.1:" + taken.getLocalPort() + ": "), why);
            assertTrue(why.contains("--port"), why);
            assertEquals(1, late.waitFor());
        }
        Process killed = run(Site.options(postgres.port(), database, 9));
        Process well = run(Site.options(postgres.port(), database, 9));
        try (BufferedReader first = killed.inputReader(); BufferedReader said = well.inputReader()) {
            assertEquals("ready", first.readLine());
            assertEquals("ready", said.readLine());
            assertEquals(2, folders(), "each has its own");
            killed.destroyForcibly().waitFor();
            assertEquals(2, folders(), "it could not clear up");
            try (Site site = new Site()) {
                assertEquals(200, site.get("/static/site/00.js").statusCode());
            }
            assertEquals(2, folders(), "those of another temporary folder are not touched");
            Process next = run(Site.options(postgres.port(), database, 9));
            try (BufferedReader third = next.inputReader()) {
                assertEquals("ready", third.readLine());
                assertEquals(2, folders(), "what was left is gone, and what is used is not");
            } finally {
                next.destroy();
            }
            next.waitFor();
        } finally {
            killed.destroyForcibly();
            well.destroy();
        }
        well.waitFor();
        assertEquals(0, folders(), "nothing stays");
    }

    private long folders() throws Exception {
        try (var now = Files.list(folder)) {
            return now.filter(one -> one.getFileName().toString().startsWith("tare-social-")).count();
        }
    }
}
