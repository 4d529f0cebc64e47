package tare.social.files;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.FileTime;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * The site's scripts, style sheets and small images: how many there are of which length is in the contract between the
 * application and the driver (`static_file` of the model). Each block of 4 KiB begins with a marker of the file's address.
 */
public final class StaticFiles {
    /** Where they are served. */
    public static final String MOUNT = "/static";

    private static final int BLOCK = 4_096;
    /** Files of the whole site, and of the pages of each operation. */
    private static final Map<String, Integer> COUNTS = counts();
    /** They are old: whoever has one need not have it again. */
    private static final FileTime CHANGED = FileTime.from(Instant.parse("2025-01-01T00:00:00Z"));
    private static final long FNV_BASIS = 0xcbf2_9ce4_8422_2325L;
    private static final long FNV_PRIME = 0x0000_0100_0000_01b3L;

    private StaticFiles() {}

    private static Map<String, Integer> counts() {
        Map<String, Integer> counts = new LinkedHashMap<>();
        counts.put("site", 29);
        counts.put("home", 4);
        counts.put("tag_search", 1);
        counts.put("event_detail", 9);
        counts.put("person_detail", 1);
        counts.put("add_person", 2);
        counts.put("add_event", 2);
        return counts;
    }

    private static String name(int n) {
        return String.format("%02d.", n) + switch (n % 5) {
            case 0 -> "js";
            case 1 -> "css";
            default -> "gif";
        };
    }

    private static int length(int n) {
        return switch (n % 5) {
            case 0 -> 12 << 10;
            case 1 -> 6 << 10;
            default -> 3 << 9;
        };
    }

    /** Addresses of those of the site (`site`) or of an operation's page. */
    public static List<String> addresses(String of) {
        List<String> addresses = new ArrayList<>();
        for (int n = 0; n < COUNTS.getOrDefault(of, 0); n++) {
            addresses.add(MOUNT + "/" + of + "/" + name(n));
        }
        return addresses;
    }

    /** Writes all into a folder. */
    public static void write(Path folder) throws IOException {
        for (Map.Entry<String, Integer> of : COUNTS.entrySet()) {
            Path here = Files.createDirectory(folder.resolve(of.getKey()));
            for (int n = 0; n < of.getValue(); n++) {
                Path file = here.resolve(name(n));
                Files.write(file, content(MOUNT + "/" + of.getKey() + "/" + name(n), length(n)));
                Files.setLastModifiedTime(file, CHANGED);
            }
        }
    }

    /** What a file of that address and length has in it. */
    static byte[] content(String address, int length) {
        long hash = FNV_BASIS;
        for (byte one : address.getBytes(StandardCharsets.US_ASCII)) {
            hash = (hash ^ one & 0xff) * FNV_PRIME;
        }
        byte[] content = new byte[length];
        Arrays.fill(content, (byte) '.');
        for (int block = 0; block * BLOCK < length; block++) {
            byte[] marker = String.format("<tare %016x %07x>\n", hash, block).getBytes(StandardCharsets.US_ASCII);
            int at = block * BLOCK;
            System.arraycopy(marker, 0, content, at, Math.min(marker.length, length - at));
        }
        return content;
    }
}
