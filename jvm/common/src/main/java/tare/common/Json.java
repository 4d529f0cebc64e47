package tare.common;

import java.util.Locale;

/** Writes one JSON object. */
public final class Json {
    private final StringBuilder out = new StringBuilder("{");
    private final String decimals;
    private boolean first = true;

    /** An empty object; its fractions have so many digits after the point. */
    public Json(int digits) {
        decimals = "%." + digits + "f";
    }

    private Json name(String name) {
        if (!first) {
            out.append(',');
        }
        first = false;
        text(name);
        out.append(':');
        return this;
    }

    private void text(String text) {
        out.append('"');
        for (int i = 0; i < text.length(); i++) {
            char letter = text.charAt(i);
            if (letter == '"' || letter == '\\') {
                out.append('\\').append(letter);
            } else if (letter < ' ' || letter > '~') {
                out.append(String.format("\\u%04x", (int) letter));
            } else {
                out.append(letter);
            }
        }
        out.append('"');
    }

    /** A whole number. */
    public Json put(String name, long value) {
        name(name).out.append(value);
        return this;
    }

    /** A fraction. */
    public Json put(String name, double value) {
        name(name).out.append(String.format(Locale.ROOT, decimals, value));
        return this;
    }

    /** A truth. */
    public Json put(String name, boolean value) {
        name(name).out.append(value);
        return this;
    }

    /** A text. */
    public Json put(String name, String value) {
        name(name).text(value);
        return this;
    }

    /** Begins an object within this one. */
    public Json open(String name) {
        name(name).out.append('{');
        first = true;
        return this;
    }

    /** Ends it. */
    public Json close() {
        out.append('}');
        first = false;
        return this;
    }

    /** Ends the object; its text. */
    public String end() {
        return out.append('}').toString();
    }
}
