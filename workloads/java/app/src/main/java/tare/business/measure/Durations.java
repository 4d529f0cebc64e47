package tare.business.measure;

/** The three durations of operations, nanoseconds. */
public final class Durations {
    /** From the intended start to the end. */
    public final Histogram response = new Histogram();
    /** From the start to the end. */
    public final Histogram service = new Histogram();
    /** From the intended start to the start. */
    public final Histogram lateness = new Histogram();

    /** Adds all of others. */
    public void add(Durations other) {
        response.add(other.response);
        service.add(other.service);
        lateness.add(other.lateness);
    }

    /** Forgets everything. */
    public void clear() {
        response.clear();
        service.clear();
        lateness.clear();
    }
}
