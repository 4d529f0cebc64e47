package tare.web;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;

import java.io.InputStream;
import java.io.OutputStream;
import java.net.Socket;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import org.junit.jupiter.api.Test;

class FilesServedTest extends OnSite {
    private static final String IMAGE = "/files/banking/images/login/03.gif";
    private static final String CHECK = "/files/banking/checks/" + Site.USER + "/000170-front.gif";
    private static final String DOWNLOAD = "/files/support/downloads/00000/2-0.bin";

    @Test
    void filesComeAsTheyLieOnTheDisk() throws Exception {
        for (int round = 0; round < 2; round++) {
            check(IMAGE, 5_003, "image/gif");
            check(CHECK, 10_757, "image/gif");
            check("/files/support/downloads/00000/0-0.bin", 104_858, "application/octet-stream");
            check(DOWNLOAD, 1_048_576, "application/octet-stream");
        }
    }

    private static void check(String path, int length, String type) throws Exception {
        HttpResponse<byte[]> response = site.user().get(path);
        assertEquals(200, response.statusCode(), path);
        assertArrayEquals(Site.content(path, length), response.body(), path);
        assertEquals(Site.CHANGED, response.headers().firstValue("Last-Modified").orElseThrow());
        assertEquals(type, response.headers().firstValue("Content-Type").orElseThrow());
        assertEquals(length, response.headers().firstValueAsLong("Content-Length").orElseThrow());
    }

    @Test
    void whatHasNotChangedIsNotSent() throws Exception {
        double before = site.stat("not_modified");
        double files = site.stat("files");
        for (String path : new String[] {IMAGE, CHECK, DOWNLOAD}) {
            HttpResponse<byte[]> same = site.user().get(path, "If-Modified-Since", Site.CHANGED);
            assertEquals(304, same.statusCode(), path);
            assertEquals(0, same.body().length);
            assertEquals(200, site.user().get(path, "If-Modified-Since", "Fri, 31 Dec 2004 23:59:59 GMT").statusCode(),
                    path);
        }
        assertEquals(before + 3, site.stat("not_modified"));
        assertEquals(files + 6, site.stat("files"));
    }

    @Test
    void partsAreParts() throws Exception {
        byte[] whole = Site.content(DOWNLOAD, 1_048_576);
        HttpResponse<byte[]> part = site.user().get(DOWNLOAD, "Range", "bytes=4096-200000");
        assertEquals(206, part.statusCode());
        assertEquals("bytes 4096-200000/1048576", part.headers().firstValue("Content-Range").orElseThrow());
        assertArrayEquals(Arrays.copyOfRange(whole, 4_096, 200_001), part.body());
        assertEquals(416, site.user().get(DOWNLOAD, "Range", "bytes=2000000-").statusCode());
    }

    @Test
    void nothingElseIsServed() throws Exception {
        double before = site.stat("errors");
        String[] paths = {"/files/banking/images/login/99.gif", "/files/banking/images/login/", "/files/",
                "/files/pages.tsv",
            "/files/banking/checks/" + Site.USER + "/"};
        for (String path : paths) {
            assertEquals(404, site.user().get(path).statusCode(), path);
        }
        assertEquals(before + paths.length, site.stat("errors"));
        for (String path : new String[] {"/files/../pages.tsv", "/files/%2e%2e/pages.tsv", "/files/..%2fpages.tsv",
                "/files/../../../etc/passwd"}) {
            String status = raw("GET " + path + " HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
            assertEquals("HTTP/1.1 40", status.substring(0, 11), path);
        }
        assertEquals("HTTP/1.1 405", raw("PUT " + IMAGE
                + " HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
                .substring(0, 12));
        assertEquals("HTTP/1.1 400", raw("nonsense\r\n\r\n").substring(0, 12));
    }

    @Test
    void requestsInOneGoAreAnsweredInOrder() throws Exception {
        String one = "GET " + IMAGE + " HTTP/1.1\r\nHost: x\r\n\r\n";
        String last = "GET /tare/ready HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
        String answers = raw(one + one + "GET " + DOWNLOAD + " HTTP/1.1\r\nHost: x\r\n\r\n" + last);
        assertEquals(4, answers.split("HTTP/1.1 200", -1).length - 1);
        assertEquals("\r\n\r\nready", answers.substring(answers.length() - 9));
    }

    private static String raw(String request) throws Exception {
        try (Socket socket = new Socket("127.0.0.1", site.server.port())) {
            OutputStream out = socket.getOutputStream();
            out.write(request.getBytes(StandardCharsets.ISO_8859_1));
            InputStream in = socket.getInputStream();
            return new String(in.readAllBytes(), StandardCharsets.ISO_8859_1);
        }
    }
}
