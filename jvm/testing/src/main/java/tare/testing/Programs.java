package tare.testing;

import java.io.BufferedReader;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/** Programs that tests run, in virtual machines of their own with the tests' class path. */
public final class Programs {
    private Programs() {}

    /** Starts the program of a class, with these options of Java. */
    public static Process start(String main, List<String> options, List<String> words) throws IOException {
        List<String> command = new ArrayList<>();
        command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
        command.addAll(options);
        command.addAll(List.of("-cp", System.getProperty("java.class.path"), main));
        command.addAll(words);
        return new ProcessBuilder(command).start();
    }

    /** What it reports on standard error, which must be one line. */
    public static String error(Process program) throws IOException {
        try (BufferedReader errors = program.errorReader()) {
            String line = errors.readLine();
            String second = errors.readLine();
            if (second != null) {
                throw new IOException("one line is enough, but a second is: " + second);
            }
            return line;
        }
    }
}
