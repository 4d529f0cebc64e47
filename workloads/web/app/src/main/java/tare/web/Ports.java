package tare.web;

import java.net.InetAddress;
import java.nio.channels.SocketChannel;
import java.security.KeyStore;
import java.util.concurrent.atomic.LongAdder;
import org.apache.catalina.connector.Connector;
import org.apache.coyote.http11.Http11NioProtocol;
import org.apache.tomcat.util.net.NioEndpoint;
import org.apache.tomcat.util.net.SSLHostConfig;
import org.apache.tomcat.util.net.SSLHostConfigCertificate;

/** What the server listens on: made for thousands of users who think more than they ask, on one processor or two. */
final class Ports {
    /** A connection waits for its first request, and a reply for its reader, this long at most. */
    private static final int TIMEOUT_MS = 60_000;
    /** New users come in bursts; the kernel cuts it down to net.core.somaxconn. */
    private static final int WAITING = 4_096;
    /** A whole page fits into what the kernel keeps (up to net.core.wmem_max), so that slow readers hold no thread. */
    private static final int KERNEL_BYTES = 256 * 1024;

    private static final String CIPHERS = String.join(":", "TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384",
            "TLS_CHACHA20_POLY1305_SHA256", "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
            "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
            "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384", "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
            "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256", "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256");

    private Ports() {}

    /** Counts the connections that it takes. */
    private static final class Counting extends NioEndpoint {
        private final LongAdder count;

        Counting(LongAdder count) {
            this.count = count;
        }

        @Override
        protected boolean setSocketOptions(SocketChannel socket) {
            count.increment();
            return super.setSocketOptions(socket);
        }
    }

    /** A plain port. */
    static Connector plain(InetAddress listen, int port, int connections, int keepAliveS) {
        return connector(new Http11NioProtocol(), listen, port, connections, keepAliveS);
    }

    /** A port with TLS. */
    static Connector tls(Options options, KeyStore certificate, LongAdder count) {
        Options.Tls tls = options.tls();
        Http11NioProtocol protocol = new Http11NioProtocol(new Counting(count));
        Connector connector = connector(protocol, options.listen(), tls.port(), options.connections(),
                options.keepAliveS());
        connector.setScheme("https");
        connector.setSecure(true);
        protocol.setSSLEnabled(true);
        SSLHostConfig host = new SSLHostConfig();
        host.setProtocols("TLSv1.2+TLSv1.3");
        host.setCiphers(CIPHERS);
        host.setSessionCacheSize(tls.sessions());
        host.setSessionTimeout(tls.sessionSeconds());
        SSLHostConfigCertificate entry = new SSLHostConfigCertificate(host, SSLHostConfigCertificate.Type.UNDEFINED);
        entry.setCertificateKeystore(certificate);
        entry.setCertificateKeyAlias(Certificate.ALIAS);
        entry.setCertificateKeystorePassword(Certificate.PASSWORD);
        host.addCertificate(entry);
        connector.addSslHostConfig(host);
        return connector;
    }

    private static Connector connector(Http11NioProtocol protocol, InetAddress listen, int port, int connections,
            int keepAliveS) {
        Connector connector = new Connector(protocol);
        // A port that is taken ends the start, which would go on without it.
        connector.setThrowOnFailure(true);
        connector.setPort(port);
        protocol.setAddress(listen);
        protocol.setMaxConnections(connections);
        protocol.setAcceptCount(WAITING);
        protocol.setMaxKeepAliveRequests(-1);
        protocol.setKeepAliveTimeout((int) Math.min(keepAliveS * 1_000L, Integer.MAX_VALUE));
        protocol.setConnectionTimeout(TIMEOUT_MS);
        protocol.setUseKeepAliveResponseHeader(false);
        connector.setProperty("socket.txBufSize", Integer.toString(KERNEL_BYTES));
        return connector;
    }
}
