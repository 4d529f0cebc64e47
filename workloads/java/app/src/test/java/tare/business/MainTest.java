package tare.business;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import tare.common.InvalidInput;
import tare.testing.Programs;

class MainTest {
    /** Exit code, and all that was said. */
    private record Said(int code, String text) {}

    private static Said said(String... words) throws IOException, InterruptedException {
        Process process = Programs.start("tare.business.Main", List.of("-Xmx128m", "-XX:+UseSerialGC"), List.of(words));
        process.getOutputStream().close();
        // Little is said on either, so that none waits for the other.
        String text = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8)
                + new String(process.getErrorStream().readAllBytes(), StandardCharsets.UTF_8);
        return new Said(process.waitFor(), text);
    }

    @ParameterizedTest
    @ValueSource(strings = {
        "", "walk", "run --groups", "run --groups 0", "run --groups 1001", "run --groups x", "run --rate -1",
        "run --rate NaN", "run --measure 10", "run --measure 0s", "run --warm-up -1s", "run --seed 1 --seed 2",
        "run --listen 127.0.0.1:1", "run stray", "serve", "serve --listen", "serve --listen 7117", "serve --listen localhost:7117",
        "serve --listen 127.0.0.1:99999", "serve --listen 999.0.0.1:1", "serve --listen 127.0.0.1:7117 --json"
    })
    void aBadCommandLineIsRefusedBeforeAnythingIsDone(String line) {
        List<String> words = line.isEmpty() ? List.of() : Arrays.asList(line.split(" "));
        InvalidInput bad = assertThrows(InvalidInput.class, () -> Main.perform(words));
        assertTrue(bad.getMessage().length() > 10, bad.getMessage());
    }

    @Test
    void exitCodesTellWhatHappened() throws IOException, InterruptedException {
        Said bad = said("run", "--rate", "many");
        assertEquals(2, bad.code());
        assertTrue(bad.text().startsWith("tare-java: --rate takes a number"), bad.text());
        Said help = said("--help");
        assertEquals(0, help.code());
        assertTrue(help.text().contains("serve --listen") && help.text().contains("--measure"), help.text());
        Said small = said("run", "--groups", "50", "--measure", "10ms");
        assertEquals(1, small.code());
        assertTrue(small.text().contains("the heap is too small"), small.text());
    }

    @Test
    void aRunByItselfTellsJson() throws IOException, InterruptedException {
        Said run = said("run", "--groups", "1", "--warm-up", "0s", "--measure", "300ms", "--json");
        assertEquals(0, run.code(), run.text());
        for (String name : List.of("live_heap_bytes_per_group", "operations_per_s", "p99_9_us", "allocated_bytes",
                "stock-level", "collector")) {
            assertTrue(run.text().contains("\"" + name + "\":"), name + " in " + run.text());
        }
        assertTrue(run.text().startsWith("{") && run.text().strip().endsWith("\"right\":true}"), run.text());
    }
}
