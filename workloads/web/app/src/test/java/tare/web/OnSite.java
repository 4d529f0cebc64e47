package tare.web;

import java.nio.file.Path;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.io.TempDir;

/** Tests that share a server. */
abstract class OnSite {
    @TempDir
    static Path folder;
    static Site site;

    @BeforeAll
    static void begin() throws Exception {
        site = new Site(Site.data(folder));
    }

    @AfterAll
    static void end() throws Exception {
        site.close();
    }
}
