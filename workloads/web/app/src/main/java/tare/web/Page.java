package tare.web;

import java.util.ArrayList;
import java.util.List;
import tare.common.InvalidInput;
import tare.common.Refused;
import tare.common.Text;

/** A page of a site: what it is asked with, and its fixed parts as bytes. */
final class Page {
    /** What a page does with the session of its user. */
    enum Role { LOGIN, LOGOUT, MEMBER, OPEN }

    /** What stands for a value in an embedded address: number of the parameter, and the part of its value. */
    private record Slot(int at, int from, int to) {}

    final String site;
    final String name;
    final Role role;
    /** Bytes of the page, at least. */
    final int least;
    private final List<Parameter> parameters;
    private final String ask;
    /** Up to where the proof begins. */
    final byte[] head;
    /** From the end of the proof to the heading. */
    final byte[] title;
    /** Fixed parts of the embedded files' elements, one more than slots. */
    private final List<byte[]> fixed = new ArrayList<>();
    private final List<Slot> slots = new ArrayList<>();

    /**
     * A line of the table of pages.
     *
     * @param ask the command, the second value of the backend's query
     * @param least bytes of the page, at least
     * @param embedded addresses, with values in braces
     */
    Page(String site, String name, String title, String ask, int least, Role role, List<Parameter> parameters,
            List<String> embedded) throws InvalidInput {
        this.site = site;
        this.name = name;
        this.role = role;
        this.least = least;
        this.parameters = parameters;
        this.ask = site + '&' + ask;
        this.head = Text.of("<!DOCTYPE html><html><head><title>" + title + "</title><meta name=\"proof\" content=\"");
        this.title = Text.of("\">\n<meta charset=\"utf-8\"></head><body>\n<h1>" + title + "</h1>\n");
        StringBuilder images = new StringBuilder();
        for (String address : embedded) {
            embed(images.append("<img src=\""), address);
            images.append("\">\n");
        }
        fixed.add(Text.of(images.toString()));
    }

    private void embed(StringBuilder images, String address) throws InvalidInput {
        int at = 0;
        for (int open = address.indexOf('{'); open >= 0; open = address.indexOf('{', at)) {
            int close = address.indexOf('}', open);
            if (close < 0) {
                throw new InvalidInput("'" + address + "' has an opening brace and no closing one");
            }
            images.append(address, at, open);
            fixed.add(Text.of(images.toString()));
            images.setLength(0);
            slots.add(slot(address.substring(open + 1, close)));
            at = close + 1;
        }
        images.append(address, at, address.length());
    }

    private Slot slot(String what) throws InvalidInput {
        String of = what.startsWith("product-") ? "product" : what;
        for (int i = 0; i < parameters.size(); i++) {
            if (parameters.get(i).name().equals(of)) {
                return switch (what) {
                    case "product-directory" -> new Slot(i, 0, 5);
                    case "product-item" -> new Slot(i, 6, 7);
                    default -> new Slot(i, 0, Integer.MAX_VALUE);
                };
            }
        }
        throw new InvalidInput("'{" + what + "}' is the value of no parameter of the page");
    }

    String address() {
        return "/" + site + "/" + name;
    }

    /** The values of an address's query, in the order of the parameters, each as it stands there. */
    String[] values(String query) throws Refused {
        String[] values = new String[parameters.size()];
        String text = query == null ? "" : query;
        int expected = 0;
        for (int at = 0; at < text.length();) {
            int and = text.indexOf('&', at);
            int end = and < 0 ? text.length() : and;
            int equals = text.indexOf('=', at);
            if (equals < 0 || equals >= end) {
                throw Refused.badRequest("the address has a part that is not NAME=VALUE");
            }
            int which = which(text, at, equals, expected);
            Parameter parameter = parameters.get(which);
            if (values[which] != null) {
                throw Refused.badRequest("parameter '" + parameter.name() + "' is given twice");
            }
            if (!parameter.fits(text, equals + 1, end)) {
                throw Refused.badRequest("parameter '" + parameter.name() + "' takes " + parameter.looks());
            }
            values[which] = text.substring(equals + 1, end);
            expected = which + 1;
            at = end + 1;
        }
        for (int i = 0; i < values.length; i++) {
            if (values[i] == null) {
                throw Refused.badRequest("parameter '" + parameters.get(i).name() + "' is missing");
            }
        }
        return values;
    }

    private int which(String text, int from, int to, int expected) throws Refused {
        // They come in the order of the table, so that the first look finds them.
        for (int i = 0; i < parameters.size(); i++) {
            int which = (expected + i) % parameters.size();
            String parameter = parameters.get(which).name();
            if (parameter.length() == to - from && text.startsWith(parameter, from)) {
                return which;
            }
        }
        throw Refused.badRequest("the page has a parameter too many");
    }

    /** What the backend is asked. */
    String query(String[] values) {
        StringBuilder query = new StringBuilder(128).append(ask);
        for (String value : values) {
            query.append('&').append(value);
        }
        return query.toString();
    }

    /** The value of the parameter of that name; null where the page has none. */
    String value(String[] values, Parameter.Shape shape) {
        for (int i = 0; i < values.length; i++) {
            if (parameters.get(i).shape() == shape) {
                return values[i];
            }
        }
        return null;
    }

    /** The value of a parameter by its name; null where the page has none. */
    String value(String[] values, String name) {
        for (int i = 0; i < values.length; i++) {
            if (parameters.get(i).name().equals(name)) {
                return values[i];
            }
        }
        return null;
    }

    /** The embedded files. */
    void images(Text page, String[] values) {
        for (int i = 0; i < slots.size(); i++) {
            Slot slot = slots.get(i);
            String value = values[slot.at()];
            page.put(fixed.get(i)).put(value, slot.from(), Math.min(slot.to(), value.length()));
        }
        page.put(fixed.get(slots.size()));
    }
}
