package tare.social.files;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.channels.FileChannel;
import java.nio.channels.FileLock;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.UserPrincipal;
import java.util.Comparator;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.stream.Stream;

/**
 * A folder of the application's own in the temporary one, locked while it is used. Those of the same user that nobody
 * holds were left by a process that was killed, and go when the next one begins.
 */
public final class TemporaryFolder implements AutoCloseable {
    private static final String PREFIX = "tare-social-";
    private static final String LOCK = "lock";
    private static final int TRIES = 5;
    /** Of this process: closing a second channel to a locked file would end the lock. */
    private static final Set<Path> OWN = ConcurrentHashMap.newKeySet();

    private final Path path;
    private final FileChannel held;

    /**
     * Makes one, and removes those that were left.
     *
     * @param parent the temporary folder
     * @throws IOException when nothing can be made there
     */
    public TemporaryFolder(Path parent) throws IOException {
        Path made = null;
        FileChannel channel = null;
        for (int tries = 0; channel == null; tries++) {
            if (tries == TRIES) {
                throw new IOException("others removed each new folder at once");
            }
            made = Files.createTempDirectory(parent, PREFIX);
            OWN.add(made);
            channel = locked(made);
        }
        path = made;
        held = channel;
        sweep(parent);
    }

    /** Null where another process took it for one that was left: it is gone then. */
    private static FileChannel locked(Path folder) throws IOException {
        Path file = folder.resolve(LOCK);
        FileChannel channel = FileChannel.open(file, StandardOpenOption.CREATE_NEW, StandardOpenOption.WRITE);
        try {
            if (channel.tryLock() != null && Files.exists(file)) {
                return channel;
            }
        } catch (IOException e) {
            // There are no locks on this file system: without the file nobody takes the folder for one that was left.
            Files.deleteIfExists(file);
            return channel;
        }
        channel.close();
        remove(folder);
        OWN.remove(folder);
        return null;
    }

    /** What cannot be removed stays: it is in the temporary folder. */
    private void sweep(Path parent) {
        try (Stream<Path> all = Files.list(parent)) {
            UserPrincipal user = Files.getOwner(path, LinkOption.NOFOLLOW_LINKS);
            for (Path one : all.filter(some -> some.getFileName().toString().startsWith(PREFIX)).toList()) {
                if (!OWN.contains(one)) {
                    removeIfLeft(one, user);
                }
            }
        } catch (IOException | UncheckedIOException e) {
            // It cannot be read.
        }
    }

    private static void removeIfLeft(Path one, UserPrincipal user) {
        try {
            // What others own they could replace by a link to something else meanwhile.
            if (Files.isDirectory(one, LinkOption.NOFOLLOW_LINKS)
                    && user.equals(Files.getOwner(one, LinkOption.NOFOLLOW_LINKS))) {
                try (FileChannel channel = FileChannel.open(one.resolve(LOCK), StandardOpenOption.WRITE);
                        FileLock lock = channel.tryLock()) {
                    if (lock != null) {
                        remove(one);
                    }
                }
            }
        } catch (IOException e) {
            // It is in the making, or went in this moment.
        }
    }

    private static void remove(Path folder) {
        try (Stream<Path> all = Files.walk(folder)) {
            all.sorted(Comparator.reverseOrder()).forEach(path -> path.toFile().delete());
        } catch (IOException | UncheckedIOException e) {
            // The next one to begin finds it, or whoever clears the temporary folder.
        }
    }

    /** Where it is. */
    public Path path() {
        return path;
    }

    /** Removes it. */
    @Override
    public void close() {
        remove(path);
        try {
            held.close();
        } catch (IOException e) {
            // The lock ends with the process at the latest.
        }
        OWN.remove(path);
    }
}
