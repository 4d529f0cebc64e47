package tare.social.files;

import java.io.IOException;
import java.io.InputStream;
import java.net.InetSocketAddress;
import java.net.URLEncoder;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayDeque;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.LongAdder;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * The file store and the geocoder in it. Connections are kept; the one that was used last is used next, so that there are
 * no more than are needed at once. Files pass through a buffer, a part at a time.
 */
public final class Store implements AutoCloseable {
    private static final long LOOK_MS = 500;
    private static final int LONGEST_PLACE = 4 * 1024;
    private static final int OK = 200;
    private static final int CREATED = 201;
    private static final int NOT_FOUND = 404;
    private static final Pattern PLACE = Pattern.compile(
            "<Latitude>(-?[0-9]{1,3}\\.[0-9]{1,9})</Latitude>\\s*<Longitude>(-?[0-9]{1,3}\\.[0-9]{1,9})</Longitude>");

    private final InetSocketAddress address;
    private final String tree;
    private final int timeoutMs;
    private final ArrayDeque<Link> idle = new ArrayDeque<>();
    private final Set<Link> all = ConcurrentHashMap.newKeySet();
    private final LongAdder calls = new LongAdder();
    private final LongAdder callNs = new LongAdder();
    private final LongAdder errors = new LongAdder();
    private final Thread watch;

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
        void send(Link link) throws IOException;
    }

    @FunctionalInterface
    private interface Answer<T> {
        T read(Link link) throws IOException;
    }

    /**
     * Connects to nobody yet.
     *
     * @param instance number of this instance of the application, whose tree is used
     * @param timeoutMs after which a store from which nothing comes has failed, milliseconds
     */
    public Store(InetSocketAddress address, int instance, int timeoutMs) {
        this.address = address;
        this.timeoutMs = timeoutMs;
        tree = "/" + instance;
        watch = new Thread(this::watch, "store-watch");
        watch.setDaemon(true);
        watch.start();
    }

    private void watch() {
        try {
            while (true) {
                Thread.sleep(LOOK_MS);
                long now = System.nanoTime();
                all.forEach(link -> link.hurry(now));
            }
        } catch (InterruptedException e) {
            // Closed.
        }
    }

    /**
     * Asks for a file, and waits until it begins to come.
     *
     * @param path such as `/person/7.jpg`
     * @return to be closed; null where there is no such file
     */
    public Incoming get(String path) throws Unserved {
        String what = "get " + tree + path + " from";
        return exchange(what, link -> link.get(tree + path), link -> {
            if (link.status() == NOT_FOUND) {
                drain(link);
                return null;
            }
            check(link, OK);
            return new Incoming(this, link, what);
        });
    }

    /** Keeps a file. */
    public void put(String path, Source source, long length) throws Unserved {
        exchange("bring " + tree + path + " to", link -> {
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
    public Coordinates locate(String street, String city, String state, String zip) throws Unserved {
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

    private static void check(Link link, int status) throws IOException {
        if (link.status() != status) {
            throw new IOException("it answered with status " + link.status());
        }
    }

    private static void drain(Link link) throws IOException {
        text(link);
    }

    private static String text(Link link) throws IOException {
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

    private <T> T exchange(String what, Request request, Answer<T> answer) throws Unserved {
        calls.increment();
        long began = System.nanoTime();
        Link link = null;
        try {
            link = take();
            try {
                request.send(link);
            } catch (Link.Stale e) {
                drop(link);
                // Once more, on one that cannot have been idle too long.
                link = open();
                request.send(link);
            }
            T result = answer.read(link);
            // A file goes on coming.
            if (!(result instanceof Incoming)) {
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
    Unserved failed(String what, IOException why) {
        errors.increment();
        return new Unserved("cannot " + what + " the file store " + address.getAddress().getHostAddress() + ":"
                + address.getPort() + ": "
                + (why.getMessage() == null ? why.getClass().getSimpleName() : why.getMessage())
                + "; see whether it runs there (--files)");
    }

    /** Counts the time since then as waited for. */
    void waited(long began) {
        callNs.add(System.nanoTime() - began);
    }

    private Link take() throws IOException {
        synchronized (idle) {
            Link link = idle.pollLast();
            if (link != null) {
                return link;
            }
        }
        return open();
    }

    private Link open() throws IOException {
        Link link = new Link(address, timeoutMs);
        all.add(link);
        return link;
    }

    /** It may be used by others, where its answer was taken as a whole. */
    void give(Link link) {
        if (link.isKept()) {
            synchronized (idle) {
                idle.addLast(link);
            }
        } else {
            drop(link);
        }
    }

    /** It is of no use any more; null is none. */
    void drop(Link link) {
        if (link != null) {
            all.remove(link);
            link.close();
        }
    }

    /** Requests to the store and the geocoder, failed ones too. */
    public long calls() {
        return calls.sum();
    }

    /** Requests that failed. */
    public long errors() {
        return errors.sum();
    }

    /** Time that the store was waited for, seconds; not that of those whom its files are for. */
    public double seconds() {
        return callNs.sum() / 1e9;
    }

    @Override
    public void close() {
        watch.interrupt();
        all.forEach(Link::close);
    }
}
