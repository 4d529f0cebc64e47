package tare.social;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;

/** Tests that each have an application of their own. */
abstract class OnSite {
    Site site;

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
}
