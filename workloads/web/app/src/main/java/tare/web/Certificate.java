package tare.web;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.KeyStore;
import java.security.PrivateKey;
import java.security.Signature;
import java.security.cert.X509Certificate;
import java.util.List;
import org.apache.tomcat.util.net.jsse.PEMFile;
import tare.common.InvalidInput;

/** A certificate and its key, of two files. */
final class Certificate {
    /** Of the entry in the store, which is in memory alone; so its password guards nothing. */
    static final String ALIAS = "server";
    static final String PASSWORD = "in-memory";

    private Certificate() {}

    /** Reads both, and sees that they belong together. */
    static KeyStore read(Path chain, Path key) throws InvalidInput {
        List<X509Certificate> certificates = pem("certificate", chain).getCertificates();
        if (certificates.isEmpty()) {
            throw new InvalidInput("there is no certificate in " + chain);
        }
        PrivateKey secret = pem("key", key).getPrivateKey();
        if (secret == null) {
            throw new InvalidInput("there is no private key in " + key);
        }
        try {
            if (!belongs(certificates.get(0), secret)) {
                throw new InvalidInput("the key in " + key + " is not that of the certificate in " + chain);
            }
            KeyStore store = KeyStore.getInstance("PKCS12");
            store.load(null, null);
            store.setKeyEntry(ALIAS, secret, PASSWORD.toCharArray(), certificates.toArray(new X509Certificate[0]));
            return store;
        } catch (GeneralSecurityException | IOException e) {
            throw new InvalidInput("cannot use the certificate in " + chain + " with the key in " + key + ": " + e.getMessage());
        }
    }

    private static PEMFile pem(String what, Path file) throws InvalidInput {
        if (!Files.isRegularFile(file)) {
            throw new InvalidInput("there is no file " + file + " with the " + what);
        }
        try {
            return new PEMFile(file.toString());
        } catch (IOException | GeneralSecurityException | RuntimeException e) {
            throw new InvalidInput("cannot read the " + what + " in " + file + ": " + e.getMessage());
        }
    }

    private static boolean belongs(X509Certificate certificate, PrivateKey key) throws GeneralSecurityException {
        String algorithm = switch (key.getAlgorithm()) {
            case "EC" -> "SHA256withECDSA";
            case "RSA" -> "SHA256withRSA";
            default -> key.getAlgorithm();
        };
        byte[] any = {1, 2, 3};
        Signature signature = Signature.getInstance(algorithm);
        signature.initSign(key);
        signature.update(any);
        byte[] signed = signature.sign();
        if (!certificate.getPublicKey().getAlgorithm().equals(key.getAlgorithm())) {
            return false;
        }
        signature.initVerify(certificate.getPublicKey());
        signature.update(any);
        return signature.verify(signed);
    }
}
