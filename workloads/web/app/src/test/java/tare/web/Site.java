package tare.web;

import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.FileTime;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

/** A server on made-up data with a backend of the test's own, and someone who asks it. */
final class Site implements AutoCloseable {
    static final String TOKEN = "0123456789abcdef";
    static final String USER = "0000000017";
    static final String CHANGED = "Sat, 01 Jan 2005 00:00:00 GMT";

    final FakeBackend backend = new FakeBackend();
    final Server server;
    final HttpClient client;

    Site(Path data, String... more) throws Exception {
        this(HttpClient.newHttpClient(), data, more);
    }

    Site(HttpClient client, Path data, String... more) throws Exception {
        this.client = client;
        List<String> words = new ArrayList<>(List.of("--data", data.toString(), "--listen", "127.0.0.1", "--port", "0",
                "--backend",
                "127.0.0.1:" + backend.address().getPort()));
        words.addAll(Arrays.asList(more));
        server = Main.start(words);
    }

    /** Writes pages and files as a generator does. */
    static Path data(Path folder) throws IOException {
        String images = IntStream.range(0, 8).mapToObj(i -> "/files/banking/images/login/0" + i + ".gif")
                .collect(Collectors.joining(","));
        Files.writeString(folder.resolve("pages.tsv"), String.join("\n",
                "banking\tlogin\tBank: log in\t1\t4000\tlogin\tuser,token\t" + images,
                "banking\taccount_summary\tBank: accounts\t2\t17000\tmember\tuser,token\t",
                "banking\tcheck_detail_html\tBank: a check\t4\t11000\tmember\tuser,check,token\t"
                        + "/files/banking/checks/{user}/{check}-front.gif,"
                        + "/files/banking/checks/{user}/{check}-back.gif",
                "banking\tlogout\tBank: good bye\t17\t46000\tlogout\tuser,token\t",
                "ecommerce\tindex\tShop\t1\t54000\topen\tuser,token\t",
                "ecommerce\tproductdetail\tShop: product\t5\t22000\topen\tproduct,token\t"
                        + "/files/ecommerce/products/{product-directory}/{product-item}-b.jpg",
                "ecommerce\tcart\tShop: cart\t9\t2000\topen\tproduct,quantity,token\t",
                "ecommerce\tlogin\tShop: log in\t10\t0\tlogin\tuser,token\t",
                "ecommerce\tconfirm\tShop: order\t13\t3000\tmember\tuser,token\t",
                "support\thome\tSupport\t1\t51700\topen\ttoken\t",
                ""));
        for (int i = 0; i < 8; i++) {
            file(folder, "/files/banking/images/login/0" + i + ".gif", 5_000 + i);
        }
        file(folder, "/files/banking/checks/" + USER + "/000170-front.gif", 10_757);
        file(folder, "/files/support/downloads/00000/0-0.bin", 104_858);
        file(folder, "/files/support/downloads/00000/2-0.bin", 1_048_576);
        return folder;
    }

    private static void file(Path folder, String path, int length) throws IOException {
        Path file = folder.resolve(path.substring(1));
        Files.createDirectories(file.getParent());
        Files.write(file, content(path, length));
        Files.setLastModifiedTime(file, FileTime.from(Instant.parse("2005-01-01T00:00:00Z")));
    }

    /** What a file consists of: markers every 4096 bytes, and filler. */
    static byte[] content(String path, int length) {
        long id = 0xcbf29ce484222325L;
        for (byte one : path.getBytes(StandardCharsets.US_ASCII)) {
            id = (id ^ one) * 0x100000001b3L;
        }
        byte[] content = new byte[length];
        Arrays.fill(content, (byte) 'x');
        for (int block = 0; block * 4_096 < length; block++) {
            byte[] marker = String.format("<tare %016x %07x>\n", id, block).getBytes(StandardCharsets.US_ASCII);
            System.arraycopy(marker, 0, content, block * 4_096, Math.min(32, length - block * 4_096));
        }
        return content;
    }

    /** A user with a cookie, or none yet. */
    final class User {
        Optional<String> cookie = Optional.empty();
        boolean secure;

        HttpResponse<byte[]> get(String path, String... headers) throws IOException, InterruptedException {
            String at = secure ? "https://127.0.0.1:" + server.tlsPort() : "http://127.0.0.1:" + server.port();
            HttpRequest.Builder request = HttpRequest.newBuilder(URI.create(at + path))
                    .version(HttpClient.Version.HTTP_1_1);
            if (headers.length > 0) {
                request.headers(headers);
            }
            cookie.ifPresent(value -> request.header("Cookie", "SESSION=" + value));
            HttpResponse<byte[]> response = client.send(request.build(), HttpResponse.BodyHandlers.ofByteArray());
            response.headers().firstValue("Set-Cookie")
                    .ifPresent(set -> cookie = Optional.of(set.replaceAll("SESSION=([^;]*);.*", "$1")));
            return response;
        }

        /** The page's text; it must be one. */
        String page(String path) throws IOException, InterruptedException {
            HttpResponse<byte[]> response = get(path);
            String text = new String(response.body(), StandardCharsets.UTF_8);
            if (response.statusCode() != 200) {
                throw new IOException(path + " is answered " + response.statusCode() + ": " + text);
            }
            return text;
        }
    }

    User user() {
        return new User();
    }

    /** A number of the server's own account. */
    double stat(String name) throws IOException, InterruptedException {
        String stats = new String(user().get("/tare/stats").body(), StandardCharsets.UTF_8);
        return Double.parseDouble(stats.replaceFirst("(?s).*\"" + name + "\":([0-9.]+)[,}].*", "$1"));
    }

    @Override
    public void close() throws IOException {
        server.close();
        backend.close();
    }
}
