package tare.web;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.InputStream;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class OverloadTest {
    @TempDir
    Path folder;

    @Test
    void manyConnectionsShareFewThreads() throws Exception {
        int users = 200;
        try (Site site = new Site(Site.data(folder), "--threads", "2", "--backend-connections", "2")) {
            List<Socket> sockets = new ArrayList<>();
            for (int i = 0; i < users; i++) {
                sockets.add(new Socket("127.0.0.1", site.server.port()));
            }
            for (int round = 0; round < 3; round++) {
                for (Socket socket : sockets) {
                    socket.getOutputStream().write(("GET /support/home?token=" + Site.TOKEN
                            + " HTTP/1.1\r\nHost: x\r\n\r\n")
                            .getBytes(StandardCharsets.US_ASCII));
                }
                for (Socket socket : sockets) {
                    read(socket.getInputStream());
                }
            }
            for (Socket socket : sockets) {
                socket.close();
            }
            assertEquals(3 * users, site.stat("pages"));
            assertEquals(3 * users, site.stat("backend_calls"));
            assertEquals(0, site.stat("errors"));
            assertTrue(site.backend.server.connections() <= 2, "as many as there may be");
        }
    }

    private static void read(InputStream in) throws Exception {
        StringBuilder head = new StringBuilder();
        while (head.indexOf("\r\n\r\n") < 0) {
            head.append((char) in.read());
        }
        assertTrue(head.toString().startsWith("HTTP/1.1 200"), head.toString());
        String body = new String(in.readNBytes(51_700), StandardCharsets.UTF_8);
        assertTrue(body.startsWith("<!DOCTYPE html>") && body.endsWith("</html>\n"));
    }

    @Test
    void sessionsEndWhenTheirUsersAreGone() throws Exception {
        try (Site site = new Site(Site.data(folder), "--session-timeout", "1")) {
            Site.User user = site.user();
            String page = "?user=" + Site.USER + "&token=" + Site.TOKEN;
            user.page("/banking/login" + page);
            assertEquals(1, site.stat("sessions"));
            // It ends after a second without a request, so it is asked for ever more seldom until it has.
            for (long pauseMs = 1_100; user.get("/banking/account_summary" + page).statusCode() != 403; pauseMs *= 2) {
                Thread.sleep(pauseMs);
            }
            assertEquals(1, site.stat("sessions_most"));
        }
    }
}
