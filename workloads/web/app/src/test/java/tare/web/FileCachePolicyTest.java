package tare.web;

import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class FileCachePolicyTest {
    @TempDir
    Path folder;

    @Test
    void imagesAreAlwaysKeptAndOthersUntilTheirShareIsFull() throws Exception {
        Files.createDirectories(folder.resolve("bank/checks/1"));
        for (int i = 0; i < 5; i++) {
            Files.write(folder.resolve("bank/checks/1/" + i + ".gif"), new byte[4_000]);
        }
        Files.write(folder.resolve("bank/checks/1/long.gif"), new byte[9_000]);
        FileCachePolicy kept = new FileCachePolicy(folder.toFile(), 8_000, 3 * 5_024);
        assertTrue(kept.noCache("/files/bank/checks/1/long.gif"), "the container would not keep it");
        assertTrue(kept.noCache("/files/bank/checks/1/none.gif"));
        for (int i = 0; i < 3; i++) {
            assertFalse(kept.noCache("/files/bank/checks/1/" + i + ".gif"), "there is room");
        }
        assertTrue(kept.noCache("/files/bank/checks/1/3.gif"), "there is none");
        assertFalse(kept.noCache("/files/bank/checks/1/0.gif"), "what is kept stays");
        assertFalse(kept.noCache("/files/bank/images/login/00.gif"), "images need none");
        assertTrue(kept.noCache("/tare/ready"));
    }
}
