package tare.web;

import java.net.InetAddress;
import java.nio.file.Path;
import java.security.KeyStore;
import java.util.concurrent.atomic.LongAdder;
import java.util.logging.Level;
import java.util.logging.Logger;
import org.apache.catalina.Context;
import org.apache.catalina.connector.Connector;
import org.apache.catalina.servlets.DefaultServlet;
import org.apache.catalina.startup.Tomcat;

/**
 * The container by itself, which the server is measured against by bench/web-server.sh: its servlet for files, all as
 * it comes, on the same connectors. Words: DATA PORT, and TLS-PORT CERTIFICATE KEY for TLS.
 */
final class PlainContainer {
    private static final Logger CONTAINER = Logger.getLogger("org.apache");

    private PlainContainer() {}

    public static void main(String[] words) throws Exception {
        CONTAINER.setLevel(Level.OFF);
        Tomcat tomcat = new Tomcat();
        tomcat.setBaseDir(words[0]);
        InetAddress listen = InetAddress.getLoopbackAddress();
        Connector plain = Connectors.plain(listen, Integer.parseInt(words[1]), 20_000, 300);
        tomcat.setConnector(plain);
        if (words.length > 2) {
            KeyStore certificate = Certificate.read(Path.of(words[3]), Path.of(words[4]));
            Options.Tls tls = new Options.Tls(Integer.parseInt(words[2]), Path.of(words[3]), Path.of(words[4]), 37_917,
                    900);
            Options options = new Options(Path.of(words[0]), listen, 0, tls, null, 1, 1, 200, 20_000, 300);
            tomcat.getService().addConnector(Connectors.tls(options, certificate, new LongAdder()));
        }
        Context files = tomcat.addContext("", words[0]);
        Tomcat.addServlet(files, "files", new DefaultServlet()).addMapping("/");
        files.addMimeMapping("gif", "image/gif");
        tomcat.start();
        System.out.print("ready\n");
        System.out.flush();
    }
}
