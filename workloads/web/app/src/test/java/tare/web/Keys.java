package tare.web;

import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.KeyStore;
import java.security.cert.X509Certificate;
import java.util.Base64;
import javax.net.ssl.SSLContext;
import javax.net.ssl.TrustManagerFactory;

/** A certificate made for a test, as PEM files, and what trusts it. */
final class Keys {
    private static final char[] PASSWORD = "password".toCharArray();

    final Path certificate;
    final Path key;
    final X509Certificate made;

    Keys(Path folder, String name, String algorithm) throws Exception {
        Path store = folder.resolve(name + ".p12");
        Process keytool = new ProcessBuilder(Path.of(System.getProperty("java.home"), "bin", "keytool").toString(),
                "-genkeypair", "-alias", "x",
                "-keyalg", algorithm, "-dname", "CN=127.0.0.1", "-ext", "san=ip:127.0.0.1", "-validity", "2",
                        "-storetype", "PKCS12",
                "-keystore", store.toString(), "-storepass", new String(PASSWORD)).redirectErrorStream(true).start();
        String said = new String(keytool.getInputStream().readAllBytes());
        if (keytool.waitFor() != 0) {
            throw new IOException(said);
        }
        KeyStore keys = KeyStore.getInstance("PKCS12");
        try (InputStream in = Files.newInputStream(store)) {
            keys.load(in, PASSWORD);
        }
        made = (X509Certificate) keys.getCertificate("x");
        certificate = pem(folder.resolve(name + ".crt"), "CERTIFICATE", made.getEncoded());
        key = pem(folder.resolve(name + ".key"), "PRIVATE KEY", keys.getKey("x", PASSWORD).getEncoded());
    }

    private static Path pem(Path file, String what, byte[] content) throws IOException {
        String text = Base64.getMimeEncoder(64, new byte[] {'\n'}).encodeToString(content);
        return Files.writeString(file, "-----BEGIN " + what + "-----\n" + text + "\n-----END " + what + "-----\n");
    }

    /** Trusts this certificate alone. */
    SSLContext trusting() throws Exception {
        KeyStore trusted = KeyStore.getInstance("PKCS12");
        trusted.load(null, null);
        trusted.setCertificateEntry("x", made);
        TrustManagerFactory factory = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
        factory.init(trusted);
        SSLContext context = SSLContext.getInstance("TLS");
        context.init(null, factory.getTrustManagers(), null);
        return context;
    }
}
