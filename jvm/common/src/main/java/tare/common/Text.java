package tare.common;

import java.nio.charset.StandardCharsets;
import java.util.Arrays;

/** Bytes of a page in the making, UTF-8. Kept by a thread from page to page, so that nothing is allocated for it. */
public final class Text {
    private static final int FIRST = 16 * 1024;
    /** More is not kept for the next page. */
    private static final int KEPT = 128 * 1024;
    /** Bytes that a letter can become, at most: `&quot;`. */
    private static final int LONGEST = 6;

    private byte[] bytes = new byte[FIRST];
    private int length;

    /** Begins anew. */
    public Text clear() {
        length = 0;
        if (bytes.length > KEPT) {
            bytes = new byte[FIRST];
        }
        return this;
    }

    /** The bytes, of which the first {@link #length} count. */
    public byte[] bytes() {
        return bytes;
    }

    /** How many bytes there are. */
    public int length() {
        return length;
    }

    /** A copy of what there is. */
    public byte[] copy() {
        return Arrays.copyOf(bytes, length);
    }

    private void room(int more) {
        if (bytes.length - length < more) {
            bytes = Arrays.copyOf(bytes, Math.max(bytes.length * 2, length + more));
        }
    }

    /** Bytes as they are. */
    public Text put(byte[] more) {
        return put(more, 0, more.length);
    }

    private Text put(byte[] more, int from, int count) {
        room(count);
        System.arraycopy(more, from, bytes, length, count);
        length += count;
        return this;
    }

    /** Letters that are known to be ASCII. */
    public Text put(String ascii) {
        return put(ascii, 0, ascii.length());
    }

    /** Part of letters that are known to be ASCII. */
    @SuppressWarnings("deprecation") // The method that copies bytes of ASCII without looking at a character set.
    public Text put(String ascii, int from, int to) {
        room(to - from);
        ascii.getBytes(from, to, bytes, length);
        length += to - from;
        return this;
    }

    /** A whole number, decimal. */
    public Text put(long number) {
        return put(Long.toString(number));
    }

    /** Text of somebody else: what would be markup is written as what it looks like. */
    public Text escaped(String text) {
        int count = text.length();
        room(count * LONGEST);
        byte[] to = bytes;
        int at = length;
        for (int i = 0; i < count; i++) {
            char one = text.charAt(i);
            if (one >= 0x80) {
                length = at;
                return put(of(rest(text, i)));
            }
            byte[] mark = MARKS[one];
            if (mark == null) {
                to[at++] = (byte) one;
            } else {
                System.arraycopy(mark, 0, to, at, mark.length);
                at += mark.length;
            }
        }
        length = at;
        return this;
    }

    /** The same for part of bytes that are UTF-8. */
    public Text escaped(byte[] from, int begin, int end) {
        room((end - begin) * LONGEST);
        byte[] to = bytes;
        int at = length;
        for (int i = begin; i < end; i++) {
            byte one = from[i];
            byte[] mark = one < 0 ? null : MARKS[one];
            if (mark == null) {
                to[at++] = one;
            } else {
                System.arraycopy(mark, 0, to, at, mark.length);
                at += mark.length;
            }
        }
        length = at;
        return this;
    }

    /** The same for texts that are not all ASCII. */
    private static String rest(String text, int from) {
        return text.substring(from).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
                .replace("\"", "&quot;");
    }

    private static final byte[][] MARKS = marks();

    private static byte[][] marks() {
        byte[][] marks = new byte[0x80][];
        marks['<'] = of("&lt;");
        marks['>'] = of("&gt;");
        marks['&'] = of("&amp;");
        marks['"'] = of("&quot;");
        return marks;
    }

    /** The bytes of a text. */
    public static byte[] of(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }
}
