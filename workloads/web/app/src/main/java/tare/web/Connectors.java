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
import tare.common.server.EmbeddedTomcat;

/** What the server listens on. */
final class Connectors {
    private static final String CIPHERS = String.join(":", "TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384",
            "TLS_CHACHA20_POLY1305_SHA256", "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
            "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
            "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384", "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
            "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256", "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256");

    private Connectors() {}

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
        return EmbeddedTomcat.connector(new Http11NioProtocol(), listen, port, connections, keepAliveS);
    }

    /** A port with TLS. */
    static Connector tls(Options options, KeyStore certificate, LongAdder count) {
        Options.Tls tls = options.tls();
        Http11NioProtocol protocol = new Http11NioProtocol(new Counting(count));
        Connector connector = EmbeddedTomcat.connector(protocol, options.listen(), tls.port(),
                options.connections(), options.keepAliveS());
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
}
