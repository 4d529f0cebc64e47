package tare.web;

import java.nio.charset.StandardCharsets;
import java.util.Arrays;

/** Bytes of a page in the making. Kept by a thread from page to page, so that nothing is allocated for it. */
final class Text {
    private byte[] bytes = new byte[16 * 1024];
    private int length;

    Text clear() {
        length = 0;
        return this;
    }

    byte[] bytes() {
        return bytes;
    }

    int length() {
        return length;
    }

    private void room(int more) {
        if (bytes.length - length < more) {
            bytes = Arrays.copyOf(bytes, Math.max(bytes.length * 2, length + more));
        }
    }

    Text put(byte[] more) {
        return put(more, 0, more.length);
    }

    Text put(byte[] more, int from, int count) {
        room(count);
        System.arraycopy(more, from, bytes, length, count);
        length += count;
        return this;
    }

    /** Letters that are known to be ASCII. */
    Text put(String ascii) {
        return put(ascii, 0, ascii.length());
    }

    /** Part of letters that are known to be ASCII. */
    Text put(String ascii, int from, int to) {
        room(to - from);
        for (int i = from; i < to; i++) {
            bytes[length++] = (byte) ascii.charAt(i);
        }
        return this;
    }

    /** A number that is not negative, decimal. */
    Text put(long number) {
        return put(Long.toString(number));
    }

    /** Text of somebody else: what would be markup is written as what it looks like. */
    Text escaped(byte[] from, int begin, int end) {
        room(end - begin);
        for (int i = begin; i < end; i++) {
            byte one = from[i];
            switch (one) {
                case '<' -> put(LESS).room(end - i);
                case '>' -> put(GREATER).room(end - i);
                case '&' -> put(AND).room(end - i);
                case '"' -> put(QUOTE).room(end - i);
                default -> bytes[length++] = one;
            }
        }
        return this;
    }

    private static final byte[] LESS = of("&lt;");
    private static final byte[] GREATER = of("&gt;");
    private static final byte[] AND = of("&amp;");
    private static final byte[] QUOTE = of("&quot;");

    /** The bytes of a text. */
    static byte[] of(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }
}
