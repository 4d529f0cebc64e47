package tare.web;

import java.io.IOException;
import java.nio.charset.CharacterCodingException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import tare.common.InvalidInput;

/** All pages, by address, and what they have in common. */
final class Pages {
    /** More bytes than that are a mistake: the padding of all pages is kept once. */
    private static final int MOST_BYTES = 16 << 20;
    private static final int COLUMNS = 8;

    private final Map<String, Page> byAddress = new HashMap<>();
    private final Set<String> withSessions = new HashSet<>();
    private int longest;

    private Pages() {}

    /** Reads the table of pages, one a line: site, page, title, command, bytes, role, parameters, embedded files. */
    static Pages read(Path file) throws InvalidInput {
        List<String> lines;
        try {
            lines = Files.readAllLines(file);
        } catch (NoSuchFileException e) {
            throw new InvalidInput("there is no table of pages " + file);
        } catch (CharacterCodingException e) {
            throw new InvalidInput("the table of pages " + file + " is not UTF-8");
        } catch (IOException e) {
            throw new InvalidInput("cannot read the table of pages " + file + ": " + e);
        }
        Pages pages = new Pages();
        for (int i = 0; i < lines.size(); i++) {
            if (!lines.get(i).isEmpty()) {
                try {
                    pages.add(page(lines.get(i)));
                } catch (InvalidInput e) {
                    throw new InvalidInput(file + ", line " + (i + 1) + ": " + e.getMessage());
                }
            }
        }
        if (pages.byAddress.isEmpty()) {
            throw new InvalidInput("the table of pages " + file + " has no page");
        }
        return pages;
    }

    private void add(Page page) throws InvalidInput {
        if (byAddress.put(page.address(), page) != null) {
            throw new InvalidInput("the page " + page.address() + " is there already");
        }
        if (page.role != Page.Role.OPEN) {
            withSessions.add(page.site);
        }
        longest = Math.max(longest, page.least);
    }

    private static Page page(String line) throws InvalidInput {
        String[] column = line.split("\t", -1);
        if (column.length != COLUMNS) {
            throw new InvalidInput("has " + column.length + " fields between tabs, not " + COLUMNS);
        }
        name("site", column[0]);
        name("page", column[1]);
        if (column[0].equals("files") || column[0].equals("tare")) {
            throw new InvalidInput("the name '" + column[0] + "' is that of something else than a site");
        }
        if (!column[3].matches("[0-9]{1,5}")) {
            throw new InvalidInput("the command is a number, not '" + column[3] + "'");
        }
        if (!column[4].matches("[0-9]{1,9}") || Integer.parseInt(column[4]) > MOST_BYTES) {
            throw new InvalidInput("the bytes are a number of at most " + MOST_BYTES + ", not '" + column[4] + "'");
        }
        List<Parameter> parameters = new ArrayList<>();
        Set<String> names = new HashSet<>();
        for (String name : list(column[6])) {
            name("parameter", name);
            if (!names.add(name)) {
                throw new InvalidInput("the parameter '" + name + "' is there twice");
            }
            parameters.add(Parameter.named(name));
        }
        return new Page(column[0], column[1], column[2], column[3], Integer.parseInt(column[4]), role(column[5]),
                List.copyOf(parameters), list(column[7]));
    }

    private static List<String> list(String text) {
        return text.isEmpty() ? List.of() : List.of(text.split(","));
    }

    private static void name(String what, String text) throws InvalidInput {
        if (!text.matches("[A-Za-z0-9_.-]{1,100}")) {
            throw new InvalidInput("the name of a " + what + " is of letters, digits and -, _, ., not '" + text + "'");
        }
    }

    private static Page.Role role(String text) throws InvalidInput {
        return switch (text) {
            case "login" -> Page.Role.LOGIN;
            case "logout" -> Page.Role.LOGOUT;
            case "member" -> Page.Role.MEMBER;
            case "open" -> Page.Role.OPEN;
            default -> throw new InvalidInput("the role is login, logout, member or open, not '" + text + "'");
        };
    }

    /** The page of an address such as `/banking/login`; null where there is none. */
    Page at(String address) {
        return byAddress.get(address);
    }

    /** Whether users of a site have sessions on the server: some page of it needs them. */
    boolean keepsSessions(Page page) {
        return withSessions.contains(page.site);
    }

    /** Bytes that the longest page has at least. */
    int longest() {
        return longest;
    }
}
