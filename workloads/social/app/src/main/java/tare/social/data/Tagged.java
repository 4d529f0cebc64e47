package tare.social.data;

import java.util.List;

/**
 * Events with a tag.
 *
 * @param hits how many there are
 * @param newest of them, the one that was announced last first
 */
public record Tagged(int hits, List<Title> newest) implements Objects.Sized {
    @Override
    public int bytes() {
        return 100 + 150 * newest.size();
    }
}
