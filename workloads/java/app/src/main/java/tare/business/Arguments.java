package tare.business;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.TimeUnit;

/** Words of the command line: `--name value`, and `--name` alone for switches. */
final class Arguments {
    /** A command line that cannot be followed. */
    static final class Bad extends Exception {
        private static final long serialVersionUID = 1;

        Bad(String why) {
            super(why);
        }
    }

    private final Map<String, String> values = new HashMap<>();

    Arguments(List<String> words, Set<String> options, Set<String> switches) throws Bad {
        for (int i = 0; i < words.size(); i++) {
            String word = words.get(i);
            String value = "";
            if (options.contains(word)) {
                i++;
                if (i == words.size()) {
                    throw new Bad(word + " needs a value");
                }
                value = words.get(i);
            } else if (!switches.contains(word)) {
                throw new Bad("unknown argument '" + word + "'");
            }
            if (values.put(word, value) != null) {
                throw new Bad(word + " is given twice");
            }
        }
    }

    boolean has(String name) {
        return values.containsKey(name);
    }

    String text(String name, String otherwise) {
        return values.getOrDefault(name, otherwise);
    }

    long whole(String name, long otherwise, long least, long most) throws Bad {
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
        throw new Bad(name + " takes a whole number from " + least + " to " + most + ", not '" + value + "'");
    }

    double decimal(String name, double otherwise, double most) throws Bad {
        String value = values.get(name);
        if (value == null) {
            return otherwise;
        }
        if (value.matches("[0-9]{1,12}(\\.[0-9]{1,9})?") && Double.parseDouble(value) <= most) {
            return Double.parseDouble(value);
        }
        throw new Bad(name + " takes a number from 0 to " + (long) most + ", not '" + value + "'");
    }

    /** A length of time, nanoseconds. */
    long span(String name, long otherwise) throws Bad {
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
        throw new Bad(name + " takes a length of time such as 10s, 500ms, 2m or 1h, not '" + value + "'");
    }
}
