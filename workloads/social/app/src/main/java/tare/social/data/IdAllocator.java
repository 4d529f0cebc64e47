package tare.social.data;

import java.util.EnumMap;
import java.util.Map;

/** Numbers of new rows. They are taken from the table of numbers in blocks, so that few rows wait for each other there. */
final class IdAllocator {
    private static final int BLOCK = 50;
    private static final String TAKE =
            "UPDATE id_gen SET gen_value = gen_value + ? WHERE gen_key = ? RETURNING gen_value";

    /** What is numbered; the keys of the table are the names in lower case. */
    enum Of {
        PERSON,
        SOCIALEVENT,
        ADDRESS,
        SOCIALEVENTTAG;

        private final String key = name().toLowerCase(java.util.Locale.ROOT);
    }

    /** What is left of a block. */
    private static final class Block {
        private int next;
        private int end;
        /** Why there is none, and when that was found. */
        private Unavailable failure;
        private long failedAt;
    }

    private final Database database;
    private final Map<Of, Block> blocks = new EnumMap<>(Of.class);

    IdAllocator(Database database) {
        this.database = database;
        for (Of of : Of.values()) {
            blocks.put(of, new Block());
        }
    }

    /** The next number. It is used up, whatever becomes of the row. */
    int next(Of of) throws Unavailable {
        long began = System.nanoTime();
        Block block = blocks.get(of);
        synchronized (block) {
            if (block.next == block.end) {
                // Who waited for one who failed fails too: each trying for itself would wait for all before it.
                if (block.failure != null && block.failedAt - began > 0) {
                    throw block.failure;
                }
                take(of, block);
            }
            return block.next++;
        }
    }

    private void take(Of of, Block block) throws Unavailable {
        try {
            Integer end = database.read(on -> on.first(TAKE, row -> row.getInt(1), BLOCK, of.key));
            if (end == null) {
                throw new Unavailable("the table id_gen has no row '" + of.key + "'; load the tables again");
            }
            block.end = end;
            block.next = end - BLOCK;
        } catch (Unavailable e) {
            block.failure = e;
            block.failedAt = System.nanoTime();
            throw e;
        }
    }
}
