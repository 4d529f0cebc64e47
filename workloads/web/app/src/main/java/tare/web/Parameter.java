package tare.web;

/** A value that a page's address carries. What it must look like follows from its name. */
record Parameter(String name, Shape shape) {
    /** What values look like. */
    enum Shape {
        /** Ten digits. */
        USER,
        /** Six digits. */
        CHECK,
        /** Five digits, a dash, one digit. */
        PRODUCT,
        /** Sixteen hexadecimal digits. */
        TOKEN,
        /** One to ten digits. */
        NUMBER
    }

    static Parameter named(String name) {
        return new Parameter(name, switch (name) {
            case "user" -> Shape.USER;
            case "check" -> Shape.CHECK;
            case "product" -> Shape.PRODUCT;
            case "token" -> Shape.TOKEN;
            default -> Shape.NUMBER;
        });
    }

    /** Whether that part of a text is such a value. */
    boolean fits(String text, int from, int to) {
        int length = to - from;
        return switch (shape) {
            case USER -> length == 10 && digits(text, from, to);
            case CHECK -> length == 6 && digits(text, from, to);
            case PRODUCT -> length == 7 && digits(text, from, from + 5) && text.charAt(from + 5) == '-'
                    && digits(text, from + 6, to);
            case TOKEN -> length == 16 && hexadecimal(text, from, to);
            case NUMBER -> length >= 1 && length <= 10 && digits(text, from, to);
        };
    }

    /** What such values look like, for people. */
    String looks() {
        return switch (shape) {
            case USER -> "10 digits";
            case CHECK -> "6 digits";
            case PRODUCT -> "5 digits, a dash and a digit";
            case TOKEN -> "16 hexadecimal digits";
            case NUMBER -> "1 to 10 digits";
        };
    }

    private static boolean digits(String text, int from, int to) {
        for (int i = from; i < to; i++) {
            char one = text.charAt(i);
            if (one < '0' || one > '9') {
                return false;
            }
        }
        return true;
    }

    private static boolean hexadecimal(String text, int from, int to) {
        for (int i = from; i < to; i++) {
            if (Character.digit(text.charAt(i), 16) < 0 || text.charAt(i) > 'f') {
                return false;
            }
        }
        return true;
    }
}
