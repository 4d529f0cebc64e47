package tare.web.backend;

import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import tare.common.client.BackendFailure;

/** An answer's fields, as they came: the first is the proof. Valid until the thread asks again. */
public final class Reply {
    private static final byte[] BEGIN = bytes("<html><head><title>backend</title></head><body><pre>\n");
    private static final byte[] END = bytes("\n</pre></body></html>\n");
    private static final byte[] WELL = bytes("0\n");

    /** A copy: the connection that it came on serves others as soon as it is read. */
    private byte[] body = new byte[1024];
    /** Where fields begin, and one more, as if another came after the last. */
    private int[] starts = new int[16];
    private int fields;

    private static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.ISO_8859_1);
    }

    /** The bytes that the fields lie in. */
    public byte[] bytes() {
        return body;
    }

    /** Number of fields, at least one. */
    public int fields() {
        return fields;
    }

    /** Where a field begins. */
    public int begin(int field) {
        return starts[field];
    }

    /** Where it ends. */
    public int end(int field) {
        return starts[field + 1] - 1;
    }

    /** Reads a body: exactly what the contract says, or nothing. */
    void read(byte[] from, int begin, int end) throws BackendFailure {
        int first = begin + BEGIN.length;
        // The line feed after the last is optional, as it is in texts.
        int last = from[end - 1] == '\n' || end == begin ? end : end + 1;
        last -= END.length;
        if (end - begin < BEGIN.length + END.length || !Arrays.equals(from, begin, first, BEGIN, 0, BEGIN.length)
                || !Arrays.equals(from, last, end, END, 0, end - last)) {
            throw new BackendFailure("the backend's reply is not such a page as it should be");
        }
        int line = first;
        while (line < last && from[line] != '\n') {
            line++;
        }
        if (!Arrays.equals(from, first, Math.min(line + 1, last), WELL, 0, WELL.length)) {
            throw new BackendFailure("the backend's reply has the status '"
                    + new String(from, first, Math.min(line - first, 20), StandardCharsets.ISO_8859_1) + "'");
        }
        if (body.length < end - begin) {
            body = new byte[2 * (end - begin)];
        }
        System.arraycopy(from, begin, body, 0, end - begin);
        split(line + 1 - begin, last - begin);
    }

    private void split(int begin, int end) throws BackendFailure {
        fields = 0;
        starts[0] = begin;
        for (int i = begin; i <= end; i++) {
            if (i == end || body[i] == '&') {
                fields++;
                if (fields == starts.length) {
                    starts = Arrays.copyOf(starts, 2 * fields);
                }
                starts[fields] = i + 1;
            }
        }
        if (end(0) <= begin) {
            throw new BackendFailure("the backend's reply has no proof");
        }
    }
}
