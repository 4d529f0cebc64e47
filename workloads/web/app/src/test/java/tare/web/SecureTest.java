package tare.web;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.net.http.HttpClient;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLSession;
import javax.net.ssl.SSLSocket;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class SecureTest {
    @TempDir
    static Path folder;
    private static SSLContext trusting;
    private static Site site;

    @BeforeAll
    static void begin() throws Exception {
        Keys keys = new Keys(folder, "server", "EC");
        trusting = keys.trusting();
        site = new Site(HttpClient.newBuilder().sslContext(trusting).build(), Site.data(folder), "--tls-port", "0",
                "--certificate",
                keys.certificate.toString(), "--key", keys.key.toString());
    }

    @AfterAll
    static void end() throws Exception {
        site.close();
    }

    @Test
    void pagesAndFilesComeOverTls() throws Exception {
        Site.User user = site.user();
        user.secure = true;
        String path = "/banking/login?user=" + Site.USER + "&token=" + Site.TOKEN;
        assertTrue(user.page(path).startsWith("<!DOCTYPE html><html><head><title>Bank: log in</title>"));
        assertEquals(46_000, user.page("/banking/logout?user=" + Site.USER + "&token=" + Site.TOKEN).length());
        String download = "/files/support/downloads/00000/2-0.bin";
        assertArrayEquals(Site.content(download, 1_048_576), user.get(download).body());
        assertEquals(304, user.get(download, "If-Modified-Since", Site.CHANGED).statusCode());
        assertEquals(404, user.get("/tare/stats").statusCode(), "it is served on the plain port alone");
        double before = site.stat("tls_connections");
        shake(trusting, "TLSv1.3");
        assertEquals(before + 1, site.stat("tls_connections"));
    }

    @Test
    void aSessionGoesOnOverTls() throws Exception {
        Site.User user = site.user();
        user.page("/ecommerce/cart?product=00042-7&quantity=2&token=" + Site.TOKEN);
        user.secure = true;
        assertTrue(user.page("/ecommerce/login?user=" + Site.USER + "&token=" + Site.TOKEN).contains("00042-7"));
    }

    private static SSLSession shake(SSLContext context, String... protocols) throws IOException {
        try (SSLSocket socket = (SSLSocket) context.getSocketFactory().createSocket("127.0.0.1",
                site.server.tlsPort())) {
            socket.setEnabledProtocols(protocols);
            socket.startHandshake();
            SSLSession session = socket.getSession();
            String request = "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
            socket.getOutputStream().write(request.getBytes(StandardCharsets.US_ASCII));
            assertTrue(new String(socket.getInputStream().readAllBytes(), StandardCharsets.US_ASCII)
                    .startsWith("HTTP/1.1 404"));
            return session;
        }
    }

    @Test
    void bothProtocolsAreThereAndResumeSessions() throws Exception {
        for (String protocol : new String[] {"TLSv1.3", "TLSv1.2"}) {
            SSLContext context = new Keys(folder, "other-" + protocol, "EC").trusting();
            // A context of the client's own has sessions of its own.
            assertThrows(IOException.class, () -> shake(context, protocol), "whose certificate is another's");
            SSLContext own = SSLContext.getInstance("TLS");
            own.init(null, new javax.net.ssl.TrustManager[] {new Anyone()}, null);
            SSLSession first = shake(own, protocol);
            assertEquals(protocol, first.getProtocol());
            assertTrue(protocol.equals("TLSv1.3") || first.getCipherSuite().startsWith("TLS_ECDHE_"),
                    first.getCipherSuite());
            SSLSession second = shake(own, protocol);
            assertEquals(first.getCreationTime(), second.getCreationTime(), "resumed: it is the session of before");
            SSLContext fresh = SSLContext.getInstance("TLS");
            fresh.init(null, new javax.net.ssl.TrustManager[] {new Anyone()}, null);
            assertNotEquals(first.getCreationTime(), shake(fresh, protocol).getCreationTime());
        }
    }

    /** Trusts everyone. */
    private static final class Anyone implements javax.net.ssl.X509TrustManager {
        @Override
        public void checkClientTrusted(java.security.cert.X509Certificate[] chain, String type) {}

        @Override
        public void checkServerTrusted(java.security.cert.X509Certificate[] chain, String type) {}

        @Override
        public java.security.cert.X509Certificate[] getAcceptedIssuers() {
            return new java.security.cert.X509Certificate[0];
        }
    }

    @Test
    void anRsaCertificateDoesAsWell(@TempDir Path other) throws Exception {
        Keys keys = new Keys(other, "rsa", "RSA");
        HttpClient client = HttpClient.newBuilder().sslContext(keys.trusting()).build();
        try (Site rsa = new Site(client, Site.data(other), "--tls-port", "0", "--certificate",
                keys.certificate.toString(), "--key",
                keys.key.toString(), "--tls-sessions", "100", "--tls-session-seconds", "60")) {
            Site.User user = rsa.user();
            user.secure = true;
            assertEquals(51_700, user.page("/support/home?token=" + Site.TOKEN).length());
        }
    }
}
