package tare.business.store;

import java.math.BigDecimal;
import java.math.RoundingMode;

/** Amounts of money: decimals with two digits after the point. */
public final class Money {
    /** Nothing. */
    public static final BigDecimal ZERO = BigDecimal.valueOf(0, 2);

    private Money() {}

    /** An amount of so many cents. */
    public static BigDecimal cents(long cents) {
        return BigDecimal.valueOf(cents, 2);
    }

    /** Cents of an amount. */
    public static long toCents(BigDecimal amount) {
        return amount.unscaledValue().longValueExact();
    }

    /** Rounded to whole cents, half a cent upwards. */
    public static BigDecimal rounded(BigDecimal amount) {
        return amount.setScale(2, RoundingMode.HALF_UP);
    }
}
