package tare.business;

import java.util.Locale;

/** Writes one JSON object. */
final class Json {
    private final StringBuilder out = new StringBuilder("{");
    private boolean first = true;

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

    Json put(String name, long value) {
        name(name).out.append(value);
        return this;
    }

    Json put(String name, double value) {
        name(name).out.append(String.format(Locale.ROOT, "%.3f", value));
        return this;
    }

    Json put(String name, boolean value) {
        name(name).out.append(value);
        return this;
    }

    Json put(String name, String value) {
        name(name).text(value);
        return this;
    }

    Json open(String name) {
        name(name).out.append('{');
        first = true;
        return this;
    }

    Json close() {
        out.append('}');
        first = false;
        return this;
    }

    String end() {
        return out.append('}').toString();
    }
}
