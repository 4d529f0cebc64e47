package tare.web;

import java.io.File;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.catalina.WebResourceRoot;

/**
 * Which files the container is to keep in its cache: images of pages, which are few, and of the others those that were
 * asked for first, until their share is full. A cache that is full throws out what it must read again in the next
 * moment, for most files are far more than fit; the kernel keeps those better.
 */
final class FileCachePolicy implements WebResourceRoot.CacheStrategy {
    private static final String MOUNT = "/files/";
    /** What the container keeps of a file beside its content, about, bytes. */
    private static final long BESIDE = 1_024;

    private final File folder;
    private final long longest;
    private final AtomicLong room;
    private final Set<String> kept = ConcurrentHashMap.newKeySet();

    /**
     * Nothing is kept yet.
     *
     * @param folder in which the files are
     * @param longest length of a file that the container keeps, bytes
     * @param room for files that are no images of pages, bytes
     */
    FileCachePolicy(File folder, long longest, long room) {
        this.folder = folder;
        this.longest = longest;
        this.room = new AtomicLong(room);
    }

    @Override
    public boolean noCache(String path) {
        return !isImage(path) && !kept.contains(path) && !take(path);
    }

    /** Whether it is `/files/SITE/images/...`. */
    private static boolean isImage(String path) {
        return path.startsWith(MOUNT)
                && path.startsWith("/images/", Math.max(path.indexOf('/', MOUNT.length()), MOUNT.length()));
    }

    /** Keeps a file if there is room for it. */
    private boolean take(String path) {
        if (room.get() < BESIDE || !path.startsWith(MOUNT)) {
            return false;
        }
        long length = new File(folder, path.substring(MOUNT.length())).length();
        if (length == 0 || length > longest) {
            return false;
        }
        // Nobody gets what is left when it is too little: the share is full.
        if (room.addAndGet(-length - BESIDE) < 0) {
            return false;
        }
        kept.add(path);
        return true;
    }
}
