package tare.web;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.BufferedReader;
import java.io.InputStreamReader;
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

    private String refusal(String... more) {
        List<String> words = new ArrayList<>(List.of("--data", folder.toString(), "--listen", "127.0.0.1", "--backend",
                "127.0.0.1:9"));
        words.addAll(Arrays.asList(more));
        return assertThrows(InvalidInput.class, () -> Main.start(words)).getMessage();
    }

    @Test
    void badOptionsAreReported() throws Exception {
        Site.data(folder);
        assertTrue(assertThrows(InvalidInput.class, () -> Main.start(List.of())).getMessage().contains("is missing"));
        assertTrue(refusal("--listen", "127.0.0.1").contains("twice"));
        assertTrue(refusal("--port").contains("needs a value"));
        assertTrue(refusal("--port", "65536").contains("from 0 to 65535, not '65536'"));
        assertTrue(refusal("--threads", "many").contains("not 'many'"));
        assertTrue(refusal("--colour", "red").contains("unknown argument '--colour'"));
        assertTrue(refusal("--certificate", "x").contains("not --tls-port"));
        assertTrue(refusal("--tls-port", "0").contains("--certificate is missing"));
        for (String bad : new String[] {"localhost:80", "127.0.0.1", "127.0.0.1:0", "127.0.0.1:99999", ":80"}) {
            String why = assertThrows(InvalidInput.class, () -> Options.parse(List.of("--data", "/", "--listen", "::1",
                    "--backend", bad)))
                    .getMessage();
            assertTrue(why.contains("--backend takes"), why);
        }
        assertNotNull(Options.parse(List.of("--data", "/", "--listen", "::1", "--backend", "[::1]:80")));
    }

    @Test
    void badDataAreReported() throws Exception {
        assertTrue(refusal().contains("no folder " + folder.resolve("files")));
        Site.data(folder);
        Path table = folder.resolve("pages.tsv");
        String[][] cases = {
            {"", "has no page"},
            {"banking\tlogin\n", "line 1: has 2 fields"},
            {"a\tb\tc\t1\t1\tguest\t\t\n", "the role is"},
            {"\n\na\tb\tc\tx\t1\topen\t\t\n", "line 3: the command is a number"},
            {"a\tb\tc\t1\t99999999\topen\t\t\n", "the bytes are a number"},
            {"a\tb/c\tc\t1\t1\topen\t\t\n", "the name of a page"},
            {"files\tb\tc\t1\t1\topen\t\t\n", "the name 'files'"},
            {"a\tb\tc\t1\t1\topen\tuser,user\t\n", "there twice"},
            {"a\tb\tc\t1\t1\topen\tuser\t/files/{check}.gif\n", "'{check}' is the value of no parameter"},
            {"a\tb\tc\t1\t1\topen\tuser\t/files/{user.gif\n", "no closing one"},
            {"a\tb\tc\t1\t1\topen\t\t\na\tb\tc\t1\t1\topen\t\t\n", "line 2: the page /a/b is there already"},
        };
        for (String[] one : cases) {
            Files.writeString(table, one[0]);
            String why = refusal();
            assertTrue(why.contains(one[1]), why);
        }
        Files.write(table, new byte[] {(byte) 0xff, '\n'});
        assertTrue(refusal().contains("not UTF-8"));
        Files.delete(table);
        assertTrue(refusal().contains("no table of pages"));
    }

    @Test
    void badCertificatesAreReported() throws Exception {
        Site.data(folder);
        Keys one = new Keys(folder, "one", "EC");
        Keys other = new Keys(folder, "other", "EC");
        Keys rsa = new Keys(folder, "rsa", "RSA");
        Path nothing = Files.writeString(folder.resolve("nothing"), "nothing");
        String[][] cases = {
            {"missing", one.key.toString(), "no file"},
            {nothing.toString(), one.key.toString(), "no certificate in"},
            {one.certificate.toString(), nothing.toString(), "no private key in"},
            {one.certificate.toString(), other.key.toString(), "is not that of the certificate"},
            {one.certificate.toString(), rsa.key.toString(), "is not that of the certificate"},
        };
        for (String[] pair : cases) {
            String why = refusal("--tls-port", "0", "--certificate", pair[0], "--key", pair[1]);
            assertTrue(why.contains(pair[2]), why);
        }
    }

    private static Process run(String... words) throws Exception {
        return Programs.start("tare.web.Main", List.of("-XX:TieredStopAtLevel=1"), List.of(words));
    }

    @Test
    void theProgramSaysHowItIs() throws Exception {
        Site.data(folder);
        Process bad = run("--data", folder.toString());
        assertEquals("tare-web: --listen is missing; try --help", Programs.error(bad));
        assertEquals(2, bad.waitFor());
        try (ServerSocket taken = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
            Process late = run("--data", folder.toString(), "--listen", "127.0.0.1", "--port",
                    Integer.toString(taken.getLocalPort()),
                    "--backend", "127.0.0.1:9");
            assertTrue(Programs.error(late).startsWith("tare-web: cannot listen on 127.0.0.1:" + taken.getLocalPort() + ": "));
            assertEquals(1, late.waitFor());
        }
        Process well = run("--data", folder.toString(), "--listen", "127.0.0.1", "--port", "0", "--backend",
                "127.0.0.1:9");
        try (BufferedReader said = new BufferedReader(new InputStreamReader(well.getInputStream()))) {
            assertEquals("ready", said.readLine());
        } finally {
            well.destroy();
        }
        well.waitFor();
        try (var left = Files.list(folder)) {
            assertEquals(List.of("files", "pages.tsv"), left.map(file -> file.getFileName().toString()).sorted()
                    .toList(),
                    "it writes nothing into its data");
        }
    }
}
