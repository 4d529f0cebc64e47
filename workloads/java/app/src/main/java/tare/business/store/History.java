package tare.business.store;

import java.math.BigDecimal;

/** A payment as it was booked. */
public record History(long number, int district, int customer, long date, BigDecimal amount, String text) {}
