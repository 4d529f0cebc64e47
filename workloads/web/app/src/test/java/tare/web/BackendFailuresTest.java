package tare.web;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import tare.common.client.BackendFailure;
import tare.web.backend.Backend;

class BackendFailuresTest {
    private static final String PAGE = "/support/home?token=" + Site.TOKEN;
    @TempDir
    Path folder;

    @Test
    void aPageWithoutAnAnswerIsABadGateway() throws Exception {
        try (Site site = new Site(Site.data(folder))) {
            Map<FakeBackend.Manner, String> said = Map.of(
                    FakeBackend.Manner.STATUS_ONE, "status '1'",
                    FakeBackend.Manner.NO_PROOF, "no proof",
                    FakeBackend.Manner.GARBAGE, "not such a page",
                    FakeBackend.Manner.ERROR, "HTTP/1.1 503 Busy",
                    FakeBackend.Manner.NO_LENGTH, "no length",
                    FakeBackend.Manner.CUT, "ended the connection");
            for (Map.Entry<FakeBackend.Manner, String> one : said.entrySet()) {
                site.backend.manner = one.getKey();
                HttpResponse<byte[]> response = site.user().get(PAGE);
                assertEquals(502, response.statusCode(), one.getKey().name());
                String why = new String(response.body(), StandardCharsets.UTF_8);
                assertTrue(why.contains(one.getValue()), why);
                site.backend.manner = FakeBackend.Manner.WELL;
                assertEquals(200, site.user().get(PAGE).statusCode(), "the next one is well");
            }
            assertEquals(said.size(), site.stat("backend_errors"));
            assertEquals(said.size(), site.stat("errors"));
            assertEquals(said.size() * 2, site.stat("backend_calls"));
            assertEquals(0, site.stat("sessions"), "a page that was not made begins no session");
        }
    }

    @Test
    void connectionsAreKeptAndStaleOnesReplaced() throws Exception {
        try (Site site = new Site(Site.data(folder))) {
            for (int i = 0; i < 5; i++) {
                site.user().page(PAGE);
            }
            assertEquals(1, site.backend.server.connections());
            site.backend.server.hangUp();
            site.user().page(PAGE);
            assertEquals(2, site.backend.server.connections());
            site.backend.manner = FakeBackend.Manner.SAYS_CLOSE;
            site.user().page(PAGE);
            site.user().page(PAGE);
            assertEquals(3, site.backend.server.connections(), "it is not used after it was said to be closed");
            assertEquals(0, site.stat("backend_errors"));
        }
    }

    @Test
    void whoIsSilentOrAwayIsGivenUp() throws Exception {
        try (FakeBackend silent = new FakeBackend(); Backend backend = new Backend(silent.address(), 1, 300)) {
            silent.manner = FakeBackend.Manner.SILENT;
            assertTrue(failure(backend).contains("in time"));
            silent.manner = FakeBackend.Manner.WELL;
            assertEquals(4, backend.ask("support&1&2").fields());
            assertEquals(2, backend.calls());
            assertEquals(1, backend.errors());
        }
        InetSocketAddress away;
        try (ServerSocket gone = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
            away = (InetSocketAddress) gone.getLocalSocketAddress();
        }
        try (Backend backend = new Backend(away, 1, 300)) {
            assertTrue(failure(backend).contains("no reply from the backend 127.0.0.1"));
            assertEquals(1, backend.errors());
        }
    }

    @Test
    void whoWaitsForAConnectionHasItWhenItIsFree() throws Exception {
        try (FakeBackend silent = new FakeBackend(); Backend backend = new Backend(silent.address(), 1, 60_000)) {
            silent.manner = FakeBackend.Manner.SILENT;
            CompletableFuture<String> first = CompletableFuture.supplyAsync(() -> failure(backend));
            while (silent.queries.isEmpty()) {
                Thread.onSpinWait();
            }
            silent.manner = FakeBackend.Manner.WELL;
            CompletableFuture<String> second = CompletableFuture.supplyAsync(() -> failure(backend));
            silent.server.hangUp();
            assertTrue(first.get().contains("ended the connection") || first.get().contains("reset"), first.get());
            assertEquals("none", second.get());
        }
        try (FakeBackend silent = new FakeBackend(); Backend backend = new Backend(silent.address(), 1, 300)) {
            silent.manner = FakeBackend.Manner.SILENT;
            CompletableFuture<String> first = CompletableFuture.supplyAsync(() -> failure(backend));
            CompletableFuture<String> second = CompletableFuture.supplyAsync(() -> failure(backend));
            assertTrue(first.get().contains("in time") && second.get().contains("in time"), "nobody waits for ever");
            assertEquals(2, backend.errors());
        }
    }

    private static String failure(Backend backend) {
        try {
            backend.ask("support&1&1");
            return "none";
        } catch (BackendFailure e) {
            return e.getMessage();
        }
    }
}
