package tare.social.data;

import com.zaxxer.hikari.HikariConfig;
import com.zaxxer.hikari.HikariDataSource;
import com.zaxxer.hikari.pool.HikariPool;
import java.sql.Connection;
import java.sql.SQLException;
import java.sql.SQLTransientConnectionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.LongAdder;
import org.postgresql.ds.PGSimpleDataSource;
import tare.common.Causes;
import tare.common.Json;

/** The application's database: pooled connections, transactions, and what they took. */
public final class Database implements AutoCloseable {
    private static final int CONNECT_TIMEOUT_S = 5;
    /** Who gets a connection later than this has waited for it, nanoseconds. */
    private static final long WAIT_NS = TimeUnit.MILLISECONDS.toNanos(1);
    /** Transactions that the server ended in favour of another are tried so often. */
    private static final int TRIES = 3;
    private static final String SERIALIZATION_FAILURE = "40001";
    private static final String DEADLOCK = "40P01";
    private static final String PROTOCOL = "08";
    /** The server ended the connection, or has none to give: it is stopped, or begins. */
    private static final String STOPPED = "57P0";
    /** A connection that was idle for longer is tried before it is used, milliseconds. The pool has it as a property. */
    private static final String TRIED_AFTER = "com.zaxxer.hikari.aliveBypassWindowMs";
    /** Its own half a second would have requests cost more the fewer there are. */
    private static final String TRIED_AFTER_MS = "60000";

    private final Place place;
    private final HikariDataSource pool;
    private final LongAdder calls = new LongAdder();
    private final LongAdder callNs = new LongAdder();
    private final LongAdder errors = new LongAdder();
    private final LongAdder waits = new LongAdder();
    private final LongAdder waitNs = new LongAdder();

    /**
     * What is done on one connection.
     *
     * @param <T> what comes of it
     */
    @FunctionalInterface
    public interface Work<T> {
        /** Does it. */
        T on(Statements statements) throws SQLException;
    }

    /**
     * Connects, and looks whether the tables are there.
     *
     * @param connections at most
     * @param poolMs a request waits so long for one of them, milliseconds
     * @param statementS a statement that has not answered by then has failed, and its connection with it, seconds
     */
    public Database(Place place, int connections, int poolMs, int statementS) throws Unavailable {
        this.place = place;
        if (System.getProperty(TRIED_AFTER) == null) {
            System.setProperty(TRIED_AFTER, TRIED_AFTER_MS);
        }
        try {
            pool = new HikariDataSource(config(place, connections, poolMs, statementS));
        } catch (HikariPool.PoolInitializationException e) {
            throw new Unavailable("cannot reach the database " + place + " as user " + place.user() + ": " + root(e)
                    + "; start it, or give another with --database and --user");
        }
        try {
            read(on -> on.list("SELECT gen_value FROM id_gen LIMIT 1", row -> row.getInt(1)));
        } catch (Unavailable e) {
            pool.close();
            throw new Unavailable(e.getMessage() + "; load the tables first");
        }
    }

    private static HikariConfig config(Place place, int connections, int poolMs, int statementS) {
        PGSimpleDataSource source = new PGSimpleDataSource();
        source.setServerNames(new String[] {place.server().getAddress().getHostAddress()});
        source.setPortNumbers(new int[] {place.server().getPort()});
        source.setDatabaseName(place.name());
        source.setUser(place.user());
        source.setApplicationName("tare-social");
        source.setConnectTimeout(CONNECT_TIMEOUT_S);
        source.setSocketTimeout(statementS);
        source.setTcpKeepAlive(true);
        // It is on a network of its own: nothing is encrypted, and nobody need ask whether it might be.
        source.setSslMode("disable");
        source.setGssEncMode("disable");
        // Every statement is one of a few, and is used again and again.
        source.setPrepareThreshold(2);
        HikariConfig config = new HikariConfig();
        config.setDataSource(source);
        config.setPoolName("database");
        config.setMaximumPoolSize(connections);
        config.setMinimumIdle(Math.min(connections, 4));
        config.setConnectionTimeout(poolMs);
        config.setInitializationFailTimeout(1);
        return config;
    }

    /** Reads: statements each for itself. */
    public <T> T read(Work<T> work) throws Unavailable {
        try (Connection connection = take()) {
            return work.on(new Statements(connection, calls, callNs));
        } catch (SQLException e) {
            throw failed(e);
        }
    }

    /** Writes: all or nothing. What the server ended in favour of another transaction is tried again. */
    public <T> T write(Work<T> work) throws Unavailable, Conflict {
        for (int left = TRIES - 1;; left--) {
            try (Connection connection = take()) {
                return transaction(connection, work);
            } catch (SQLException e) {
                if (Conflict.UNIQUE_VIOLATION.equals(e.getSQLState())) {
                    throw new Conflict();
                }
                boolean again = SERIALIZATION_FAILURE.equals(e.getSQLState()) || DEADLOCK.equals(e.getSQLState());
                if (!again || left == 0) {
                    throw failed(e);
                }
            }
        }
    }

    private <T> T transaction(Connection connection, Work<T> work) throws SQLException {
        connection.setAutoCommit(false);
        boolean done = false;
        try {
            T result = work.on(new Statements(connection, calls, callNs));
            long began = System.nanoTime();
            connection.commit();
            callNs.add(System.nanoTime() - began);
            calls.increment();
            done = true;
            return result;
        } finally {
            if (!done) {
                rollBack(connection);
            }
        }
    }

    /** The pool sets what else was changed back. */
    private static void rollBack(Connection connection) {
        try {
            connection.rollback();
        } catch (SQLException e) {
            // The connection is gone, and with it the transaction.
        }
    }

    private Connection take() throws SQLException {
        long began = System.nanoTime();
        try {
            return pool.getConnection();
        } finally {
            long took = System.nanoTime() - began;
            if (took >= WAIT_NS) {
                waits.increment();
                waitNs.add(took);
            }
        }
    }

    private Unavailable failed(SQLException e) {
        errors.increment();
        String state = e.getSQLState();
        boolean ended = state != null && (state.startsWith(PROTOCOL) || state.startsWith(STOPPED));
        if (ended && !(e instanceof SQLTransientConnectionException)) {
            // The idle ones are gone too, most likely: each would fail one more request.
            pool.getHikariPoolMXBean().softEvictConnections();
        }
        String what = state == null || state.startsWith(PROTOCOL) ? "cannot reach the database " : "the database ";
        return new Unavailable(what + place + (what.startsWith("the") ? " says: " : ": ") + root(e));
    }

    private static String root(Throwable failure) {
        String why = Causes.message(Causes.root(failure));
        return why.lines().findFirst().orElse(why);
    }

    /** Writes statements and their seconds, requests that failed, connections, and who waited a millisecond or more for one. */
    public void report(Json out) {
        out.put("database_calls", calls.sum()).put("database_errors", errors.sum())
                .put("database_seconds", callNs.sum() / 1e9)
                .put("pool_connections", pool.getHikariPoolMXBean().getTotalConnections())
                .put("pool_waits", waits.sum()).put("pool_wait_seconds", waitNs.sum() / 1e9);
    }

    @Override
    public void close() {
        pool.close();
    }
}
