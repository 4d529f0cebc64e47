package tare.social.data;

import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.LongAdder;

/** Prepared statements on one connection, counted. The driver keeps them prepared from request to request. */
public final class Statements {
    private final Connection connection;
    private final LongAdder calls;
    private final LongAdder callNs;

    Statements(Connection connection, LongAdder calls, LongAdder callNs) {
        this.connection = connection;
        this.calls = calls;
        this.callNs = callNs;
    }

    /**
     * Reads a row.
     *
     * @param <T> what it becomes
     */
    @FunctionalInterface
    public interface Reader<T> {
        /** Reads where the cursor stands. */
        T read(ResultSet row) throws SQLException;
    }

    /** All rows. */
    public <T> List<T> list(String sql, Reader<T> reader, Object... values) throws SQLException {
        long began = System.nanoTime();
        try (PreparedStatement statement = prepare(sql, values); ResultSet rows = statement.executeQuery()) {
            List<T> list = new ArrayList<>();
            while (rows.next()) {
                list.add(reader.read(rows));
            }
            return list;
        } finally {
            count(began);
        }
    }

    /** The first row; null where there is none. */
    public <T> T first(String sql, Reader<T> reader, Object... values) throws SQLException {
        long began = System.nanoTime();
        try (PreparedStatement statement = prepare(sql, values); ResultSet rows = statement.executeQuery()) {
            return rows.next() ? reader.read(rows) : null;
        } finally {
            count(began);
        }
    }

    /** Changes rows, and says how many. */
    public int change(String sql, Object... values) throws SQLException {
        long began = System.nanoTime();
        try (PreparedStatement statement = prepare(sql, values)) {
            return statement.executeUpdate();
        } finally {
            count(began);
        }
    }

    private void count(long began) {
        calls.increment();
        callNs.add(System.nanoTime() - began);
    }

    private PreparedStatement prepare(String sql, Object[] values) throws SQLException {
        PreparedStatement statement = connection.prepareStatement(sql);
        try {
            for (int i = 0; i < values.length; i++) {
                bind(statement, i + 1, values[i]);
            }
            return statement;
        } catch (SQLException | RuntimeException e) {
            statement.close();
            throw e;
        }
    }

    private void bind(PreparedStatement statement, int at, Object value) throws SQLException {
        if (value instanceof Integer number) {
            statement.setInt(at, number);
        } else if (value instanceof String text) {
            statement.setString(at, text);
        } else if (value instanceof Double number) {
            statement.setDouble(at, number);
        } else if (value instanceof String[] texts) {
            statement.setArray(at, connection.createArrayOf("varchar", texts));
        } else if (value instanceof Integer[] numbers) {
            statement.setArray(at, connection.createArrayOf("integer", numbers));
        } else {
            statement.setObject(at, value);
        }
    }
}
