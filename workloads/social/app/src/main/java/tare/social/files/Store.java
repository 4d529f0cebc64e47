package tare.social.files;

import java.io.IOException;
import java.io.InputStream;
import java.net.InetSocketAddress;
import java.net.URLEncoder;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.atomic.LongAdder;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import tare.common.Json;
import tare.common.client.BackendFailure;
import tare.common.client.ConnectionPool;

/** The file store and the geocoder in it. Files pass through a buffer, a part at a time. */
public final class Store implements AutoCloseable {
    private static final long CHECK_MS = 500;
    private static final int LONGEST_PLACE = 4 * 1024;
    private static final int OK = 200;
    private static final int CREATED = 201;
    private static final int NOT_FOUND = 404;
    private static final Pattern PLACE = Pattern.compile(
            "<Latitude>(-?[0-9]{1,3}\\.[0-9]{1,9})</Latitude>\\s*<Longitude>(-?[0-9]{1,3}\\.[0-9]{1,9})</Longitude>");

    private final ConnectionPool<StoreConnection> pool;
    private final String tree;
    private final LongAdder callNs = new LongAdder();

    /** An upload: read again from its beginning where a connection had ended. */
    @FunctionalInterface
    public interface Source {
        /** From the beginning. */
        InputStream open() throws IOException;
    }

    /**
     * Degrees.
     *
     * @param latitude north
     * @param longitude east
     */
    public record Coordinates(double latitude, double longitude) {}

    @FunctionalInterface
    private interface Request {
        void send(StoreConnection link) throws IOException;
    }

    @FunctionalInterface
    private interface Answer<T> {
        T read(StoreConnection link) throws IOException;
    }

    /**
     * Connects to nobody yet.
     *
     * @param instance number of this instance of the application, whose tree is used
     * @param timeoutMs after which a store from which nothing comes has failed, milliseconds
     */
    public Store(InetSocketAddress address, int instance, int timeoutMs) {
        tree = "/" + instance;
        pool = new ConnectionPool<>("store", address, CHECK_MS, () -> new StoreConnection(address, timeoutMs));
    }

    /**
     * Asks for a file, and waits until it begins to come.
     *
     * @param path such as `/person/7.jpg`
     * @return to be closed; null where there is no such file
     */
    public IncomingFile get(String path) throws BackendFailure {
        String what = "get " + tree + path + " from";
        return exchange(what, link -> link.get(tree + path), link -> {
            if (link.status() == NOT_FOUND) {
                drain(link);
                return null;
            }
            check(link, OK);
            return new IncomingFile(this, link, what);
        });
    }

    /** Keeps a file. */
    public void put(String path, Source source, long length) throws BackendFailure {
        exchange("put " + tree + path + " to", link -> {
            try (InputStream body = source.open()) {
                link.put(tree + path, body, length);
            }
        }, link -> {
            check(link, CREATED);
            drain(link);
            return null;
        });
    }

    /** Where an address is. */
    public Coordinates locate(String street, String city, String state, String zip) throws BackendFailure {
        String path = "/geocode?street=" + encoded(street) + "&city=" + encoded(city) + "&state=" + encoded(state)
                + "&zip=" + encoded(zip);
        return exchange("find a place with the geocoder of", link -> link.get(path), link -> {
            check(link, OK);
            Matcher place = PLACE.matcher(text(link));
            if (!place.find()) {
                throw new IOException("its answer has no coordinates");
            }
            return new Coordinates(Double.parseDouble(place.group(1)), Double.parseDouble(place.group(2)));
        });
    }

    private static String encoded(String text) {
        return URLEncoder.encode(text, StandardCharsets.UTF_8);
    }

    private static void check(StoreConnection link, int status) throws IOException {
        if (link.status() != status) {
            throw new IOException("it answered with status " + link.status());
        }
    }

    private static void drain(StoreConnection link) throws IOException {
        text(link);
    }

    private static String text(StoreConnection link) throws IOException {
        if (link.left() > LONGEST_PLACE) {
            throw new IOException("its answer is too long");
        }
        byte[] text = new byte[(int) link.left()];
        int at = 0;
        while (link.left() > 0) {
            ByteBuffer some = link.some();
            int count = some.remaining();
            some.get(text, at, count);
            at += count;
        }
        return new String(text, StandardCharsets.UTF_8);
    }

    private <T> T exchange(String what, Request request, Answer<T> answer) throws BackendFailure {
        pool.countCall();
        long began = System.nanoTime();
        StoreConnection link = null;
        try {
            link = pool.take();
            try {
                request.send(link);
            } catch (StoreConnection.Stale e) {
                link = pool.replace(link);
                request.send(link);
            }
            T result = answer.read(link);
            // A file goes on coming.
            if (!(result instanceof IncomingFile)) {
                give(link);
            }
            link = null;
            return result;
        } catch (IOException e) {
            throw failed(what, e);
        } finally {
            // Whatever it failed with, its answer is not over.
            drop(link);
            waited(began);
        }
    }

    /** Counts a failure. */
    BackendFailure failed(String what, IOException why) {
        pool.countError();
        return new BackendFailure("cannot " + what + " the file store " + pool.serverAnd(why)
                + "; see whether it runs there (--files)");
    }

    /** Counts the time since then as waited for. */
    void waited(long began) {
        callNs.add(System.nanoTime() - began);
    }

    /** It may be used by others, where its answer was taken as a whole. */
    void give(StoreConnection link) {
        pool.give(link);
    }

    /** It is of no use any more; null is none. */
    void drop(StoreConnection link) {
        pool.drop(link);
    }

    /** Requests that failed. */
    long errors() {
        return pool.errors();
    }

    /** Writes requests, and the seconds that the store was waited for; not those of the readers of its files. */
    public void report(Json out) {
        out.put("store_calls", pool.calls()).put("store_errors", pool.errors()).put("store_seconds", callNs.sum() / 1e9);
    }

    @Override
    public void close() {
        pool.close();
    }
}
