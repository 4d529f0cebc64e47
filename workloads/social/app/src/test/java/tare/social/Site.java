package tare.social;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.ByteArrayOutputStream;
import java.net.CookieManager;
import java.net.URI;
import java.net.URLEncoder;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.charset.StandardCharsets;
import java.sql.Connection;
import java.sql.ResultSet;
import java.sql.Statement;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** The application with a database and a store of its own. */
final class Site implements AutoCloseable {
    static final Timeouts SHORT = new Timeouts(1_000, 1, 1_000);

    final Postgres postgres = Postgres.needed();
    final String database = postgres.database();
    final FakeStore store = new FakeStore();
    final Server server;
    /** With a session of its own. */
    HttpClient user = user();

    Site(String... options) throws Exception {
        Main.quiet();
        server = new Server(Options.parse(options(postgres.port(), database, store.port(), options)), Timeouts.USUAL);
    }

    /** Where the database is reached at another port than its own. */
    Site(int databasePort, Timeouts timeouts, String... options) throws Exception {
        Main.quiet();
        server = new Server(Options.parse(options(databasePort, database, store.port(), options)), timeouts);
    }

    /** The options that it needs, and more. */
    static List<String> options(int databasePort, String database, int storePort, String... more) {
        List<String> options = new ArrayList<>(List.of("--listen", "127.0.0.1", "--port", "0", "--instance", "3",
                "--database", "127.0.0.1:" + databasePort + "/" + database, "--user", "tare", "--files",
                "127.0.0.1:" + storePort));
        options.addAll(List.of(more));
        return options;
    }

    static HttpClient user() {
        return HttpClient.newBuilder().cookieHandler(new CookieManager()).version(HttpClient.Version.HTTP_1_1).build();
    }

    private HttpRequest.Builder to(String path) {
        return HttpRequest.newBuilder(URI.create("http://127.0.0.1:" + server.port() + path));
    }

    HttpResponse<String> get(String path) throws Exception {
        return get(user, path);
    }

    HttpResponse<String> get(HttpClient who, String path) throws Exception {
        return who.send(to(path).build(), BodyHandlers.ofString());
    }

    HttpResponse<byte[]> bytes(String path, String... headers) throws Exception {
        HttpRequest.Builder request = to(path);
        return user.send((headers.length == 0 ? request : request.headers(headers)).build(), BodyHandlers.ofByteArray());
    }

    /** A page that must come, and be one. */
    String page(String path) throws Exception {
        HttpResponse<String> response = get(path);
        assertEquals(200, response.statusCode(), response.body());
        assertEquals("text/html;charset=utf-8", response.headers().firstValue("Content-Type").orElse(""));
        String page = response.body();
        assertTrue(page.startsWith("<!DOCTYPE html><html><head><title>"), page);
        assertTrue(page.endsWith("</html>\n"), page);
        assertEquals(1, all("<p id=\"user\">", page).size(), page);
        assertEquals(1, all("<h1>", page).size(), page);
        return page;
    }

    HttpResponse<String> post(String path, String... namesAndValues) throws Exception {
        return post(user, path, namesAndValues);
    }

    HttpResponse<String> post(HttpClient who, String path, String... namesAndValues) throws Exception {
        StringBuilder body = new StringBuilder();
        for (int i = 0; i < namesAndValues.length; i += 2) {
            body.append(i == 0 ? "" : "&").append(namesAndValues[i]).append('=')
                    .append(URLEncoder.encode(namesAndValues[i + 1], StandardCharsets.UTF_8));
        }
        return who.send(to(path).header("Content-Type", "application/x-www-form-urlencoded")
                .POST(BodyPublishers.ofString(body.toString())).build(), BodyHandlers.ofString());
    }

    /** Sends a form in parts: texts are fields, bytes are files. */
    HttpResponse<String> send(HttpClient who, String path, Map<String, Object> form) throws Exception {
        ByteArrayOutputStream body = new ByteArrayOutputStream();
        for (Map.Entry<String, Object> part : form.entrySet()) {
            boolean file = part.getValue() instanceof byte[];
            body.writeBytes(("--limit\r\nContent-Disposition: form-data; name=\"" + part.getKey() + "\""
                    + (file ? "; filename=\"file\"\r\nContent-Type: image/jpeg" : "") + "\r\n\r\n")
                    .getBytes(StandardCharsets.UTF_8));
            body.writeBytes(file ? (byte[]) part.getValue()
                    : part.getValue().toString().getBytes(StandardCharsets.UTF_8));
            body.writeBytes("\r\n".getBytes(StandardCharsets.UTF_8));
        }
        body.writeBytes("--limit--\r\n".getBytes(StandardCharsets.UTF_8));
        return who.send(to(path).header("Content-Type", "multipart/form-data; boundary=limit")
                .POST(BodyPublishers.ofByteArray(body.toByteArray())).build(), BodyHandlers.ofString());
    }

    /** A file with other bytes than any other of another seed. */
    static byte[] file(int length, int seed) {
        byte[] file = new byte[length];
        new java.util.Random(seed).nextBytes(file);
        return file;
    }

    private static Map<String, Object> place(Map<String, Object> form) {
        form.putAll(Map.of("telephone", "1", "timezone", "UTC", "street1", "High Road 1", "street2", "", "city", "Köln",
                "state", "NW", "zip", "50667", "country", "DE"));
        form.put("image", file(671_520, 1));
        form.put("thumbnail", file(5_758, 2));
        return form;
    }

    /** A form that is right. */
    static Map<String, Object> person(String user) {
        Map<String, Object> form = new LinkedHashMap<>();
        form.putAll(Map.of("user", user, "password", "secret", "first", "Ann", "last", "Öz <b>", "email", "a@b",
                "summary", "I am \"new\" & here"));
        return place(form);
    }

    /** A form that is right. */
    static Map<String, Object> event(String title, String tags) {
        Map<String, Object> form = new LinkedHashMap<>();
        form.putAll(Map.of("title", title, "summary", "s", "description", "d", "time", "2026-03-01T18:00", "tags", tags));
        place(form);
        form.put("document", file(129_617, 3));
        return form;
    }

    void login(int number) throws Exception {
        HttpResponse<String> response = post("/login", "user", "user" + number, "password", Integer.toString(number));
        assertEquals(302, response.statusCode(), response.body());
        assertEquals("/", response.headers().firstValue("Location").orElse(""));
    }

    static String location(HttpResponse<?> response) {
        return response.headers().firstValue("Location").orElse("");
    }

    /** What is found where the pattern's group is, or all of it. */
    static List<String> all(String pattern, String in) {
        List<String> found = new ArrayList<>();
        Matcher matcher = Pattern.compile(pattern).matcher(in);
        while (matcher.find()) {
            found.add(matcher.group(matcher.groupCount()));
        }
        return found;
    }

    static String heading(String page) {
        return all("<h1>(.*)</h1>", page).get(0);
    }

    /** A number of the application's own. */
    double stat(String name) throws Exception {
        return Double.parseDouble(all("\"" + name + "\":([0-9.]+)", get("/tare/stats").body()).get(0));
    }

    /** A value behind the application's back. */
    String value(String sql) throws Exception {
        try (Connection connection = postgres.connect(database); Statement statement = connection.createStatement();
                ResultSet row = statement.executeQuery(sql)) {
            return row.next() ? row.getString(1) : null;
        }
    }

    /** A change behind the application's back. */
    void change(String sql) throws Exception {
        try (Connection connection = postgres.connect(database); Statement statement = connection.createStatement()) {
            statement.execute(sql);
        }
    }

    @Override
    public void close() {
        server.close();
        store.close();
        // The container remembers the first one's folder as its home, and would make it again for the next.
        System.clearProperty("catalina.home");
        System.clearProperty("catalina.base");
    }
}
