package tare.business.store;

/** An order that waits for its delivery. */
public record NewOrder(int order, int district) {}
