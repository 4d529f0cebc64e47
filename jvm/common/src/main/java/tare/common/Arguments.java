package tare.common;

import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.UnknownHostException;
import java.nio.file.InvalidPathException;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.TimeUnit;

/** The arguments of a command line: `--name value` for options, `--name` alone for switches. */
public final class Arguments {
    private static final int HIGHEST_PORT = 65_535;

    private final Map<String, String> values = new HashMap<>();

    /** Reads all; each may be given once. */
    public Arguments(List<String> words, Set<String> options, Set<String> switches) throws InvalidInput {
        for (int i = 0; i < words.size(); i++) {
            String word = words.get(i);
            String value = "";
            if (options.contains(word)) {
                i++;
                if (i == words.size()) {
                    throw new InvalidInput(word + " needs a value; try --help");
                }
                value = words.get(i);
            } else if (!switches.contains(word)) {
                throw new InvalidInput("unknown argument '" + word + "'; try --help");
            }
            if (values.put(word, value) != null) {
                throw new InvalidInput(word + " is given twice");
            }
        }
    }

    /** Whether it is given. */
    public boolean has(String name) {
        return values.containsKey(name);
    }

    /** A value that must be given. */
    public String required(String name) throws InvalidInput {
        String value = values.get(name);
        if (value == null || value.isEmpty()) {
            throw new InvalidInput(name + " is missing; try --help");
        }
        return value;
    }

    /** A whole number of a range. */
    public long whole(String name, long otherwise, long least, long most) throws InvalidInput {
        String value = values.get(name);
        if (value == null) {
            return otherwise;
        }
        try {
            long number = Long.parseLong(value);
            if (number >= least && number <= most) {
                return number;
            }
        } catch (NumberFormatException e) {
            // Reported below, like a number that is out of range.
        }
        throw new InvalidInput(name + " takes a whole number from " + least + " to " + most + ", not '" + value + "'");
    }

    /** A whole number of a range that an `int` can hold. */
    public int whole(String name, int otherwise, int least, int most) throws InvalidInput {
        return (int) whole(name, (long) otherwise, least, most);
    }

    /** A port number; 0 takes any that is free. */
    public int port(String name, int otherwise) throws InvalidInput {
        return whole(name, otherwise, 0, HIGHEST_PORT);
    }

    /** A number from 0. */
    public double decimal(String name, double otherwise, double most) throws InvalidInput {
        String value = values.get(name);
        if (value == null) {
            return otherwise;
        }
        if (value.matches("[0-9]{1,12}(\\.[0-9]{1,9})?") && Double.parseDouble(value) <= most) {
            return Double.parseDouble(value);
        }
        throw new InvalidInput(name + " takes a number from 0 to " + (long) most + ", not '" + value + "'");
    }

    /** A length of time, nanoseconds. */
    public long span(String name, long otherwise) throws InvalidInput {
        String value = values.get(name);
        if (value == null) {
            return otherwise;
        }
        String digits = value.replaceFirst("(ms|s|m|h)$", "");
        if (digits.matches("[0-9]{1,9}") && digits.length() < value.length()) {
            long number = Long.parseLong(digits);
            return switch (value.substring(digits.length())) {
                case "ms" -> TimeUnit.MILLISECONDS.toNanos(number);
                case "s" -> TimeUnit.SECONDS.toNanos(number);
                case "m" -> TimeUnit.MINUTES.toNanos(number);
                default -> TimeUnit.HOURS.toNanos(number);
            };
        }
        throw new InvalidInput(name + " takes a length of time such as 10s, 500ms, 2m or 1h, not '" + value + "'");
    }

    /** A path, made absolute. */
    public Path path(String name) throws InvalidInput {
        String value = required(name);
        try {
            return Path.of(value).toAbsolutePath();
        } catch (InvalidPathException e) {
            throw new InvalidInput(name + " is no path: '" + value + "'");
        }
    }

    /** A numeric address. */
    public InetAddress address(String name) throws InvalidInput {
        return address(name, required(name));
    }

    /** A numeric address with a port. */
    public InetSocketAddress socketAddress(String name, int lowestPort) throws InvalidInput {
        return socketAddress(name, required(name), lowestPort);
    }

    /** The same of a text that is part of a value. */
    public static InetSocketAddress socketAddress(String name, String text, int lowestPort) throws InvalidInput {
        int colon = text.lastIndexOf(':');
        String port = text.substring(colon + 1);
        if (colon <= 0 || !port.matches("[0-9]{1,5}") || Integer.parseInt(port) < lowestPort
                || Integer.parseInt(port) > HIGHEST_PORT) {
            throw new InvalidInput(name + " takes ADDRESS:PORT such as 198.18.0.1:8090 or [::1]:8090, not '" + text + "'");
        }
        return new InetSocketAddress(address(name, text.substring(0, colon)), Integer.parseInt(port));
    }

    private static InetAddress address(String name, String text) throws InvalidInput {
        String bare = text.startsWith("[") && text.endsWith("]") ? text.substring(1, text.length() - 1) : text;
        // Numbers alone: a name would be looked up, and may mean another machine.
        if (bare.matches("[0-9]{1,3}(\\.[0-9]{1,3}){3}|[0-9a-fA-F:.]*:[0-9a-fA-F:.]*")) {
            try {
                return InetAddress.getByName(bare);
            } catch (UnknownHostException e) {
                // Reported below.
            }
        }
        throw new InvalidInput(name + " takes a numeric address such as 198.18.0.2 or ::1, not '" + text + "'");
    }
}
