package tare.business.client;

import java.util.ArrayList;
import java.util.List;
import java.util.function.ToLongFunction;
import tare.business.logic.Kind;
import tare.business.logic.Session;
import tare.business.measure.Durations;
import tare.business.store.Company;
import tare.business.store.Group;
import tare.business.store.Loader;
import tare.common.Jvm;

/** All data groups with their threads. Used by one controlling thread at a time. */
public final class Crew {
    private final List<Worker> workers = new ArrayList<>();
    private final long sharedHeap;
    private final long liveHeap;
    private double rate;
    private long seed;
    private boolean loaded;
    private boolean running;
    private Window window = Window.NONE;

    private enum Window {
        NONE,
        OPEN,
        ENDED
    }

    /** An order that cannot be followed now. */
    public static final class Refused extends Exception {
        Refused(String why) {
            super(why);
        }
    }

    /** So many groups of a company, the same for the same seed. */
    public Crew(int groups, long seed) {
        this.seed = seed;
        Company company = new Company(seed);
        sharedHeap = Jvm.liveHeap();
        for (int number = 1; number <= groups; number++) {
            Group group = Loader.addGroup(company, seed);
            Worker worker = new Worker(number, new Session(company, group, seed));
            worker.start();
            workers.add(worker);
        }
        liveHeap = Jvm.liveHeap();
    }

    /** How many groups there are. */
    public int groups() {
        return workers.size();
    }

    /** Live heap after loading, bytes. */
    public long liveHeap() {
        return liveHeap;
    }

    /** Live heap that one group added, bytes. */
    public long liveHeapPerGroup() {
        return (liveHeap - sharedHeap) / workers.size();
    }

    /** Takes the load to come: operations a second of all groups, 0 as fast as it goes. */
    public void load(double rate, long seed) throws Refused {
        requireIdle("load");
        this.rate = rate;
        this.seed = seed;
        loaded = true;
    }

    /** All threads begin to work. */
    public void start() throws Refused, InterruptedException {
        requireIdle("start");
        requireSound();
        if (!loaded) {
            throw new Refused("no load was given: load comes before start");
        }
        running = true;
        window = Window.NONE;
        long now = System.nanoTime();
        for (int i = 0; i < workers.size(); i++) {
            workers.get(i).begin(rate == 0 ? null : new Schedule(seed, i, rate / workers.size(), now));
        }
    }

    /** The window begins. Returns the operations done before it. */
    public long begin() throws Refused {
        requireRunning("begin");
        window = Window.OPEN;
        // No lambda, which would be linked at the edge of the window.
        long all = 0;
        for (Worker worker : workers) {
            all += worker.meter().begin();
        }
        return all;
    }

    /** The window ends. Returns the operations done when it did. */
    public long end() throws Refused {
        if (window != Window.OPEN) {
            throw new Refused("no window is open: begin comes before end");
        }
        requireSound();
        window = Window.ENDED;
        long all = 0;
        for (Worker worker : workers) {
            all += worker.meter().end();
        }
        return all;
    }

    /** Operations done. */
    public long count() throws Refused {
        requireSound();
        return operations();
    }

    private long operations() {
        return sum(worker -> worker.meter().operations());
    }

    /** Ends the work of all threads, and waits for it. Returns the operations done. */
    public long stop() throws InterruptedException {
        if (running) {
            for (Worker worker : workers) {
                worker.askToStop();
            }
            for (Worker worker : workers) {
                worker.awaitEnd();
            }
            running = false;
        }
        return operations();
    }

    /** Durations of the last window, of all threads. */
    public Durations durations() throws Refused {
        requireEnded();
        Durations all = new Durations();
        for (Worker worker : workers) {
            all.add(worker.meter().durations());
        }
        return all;
    }

    /** Starts that were missed in the last window. */
    public long dropped() throws Refused {
        requireEnded();
        return sum(worker -> worker.meter().dropped());
    }

    /** Operations done of a kind. */
    public long operations(Kind kind) {
        return sum(worker -> worker.meter().operations(kind.ordinal()));
    }

    /** Allocated by all threads of groups so far, bytes. */
    public long allocatedBytes() {
        return sum(Jvm::allocatedBytes);
    }

    /** What does not add up; `null` where everything does. */
    public String wrong() throws Refused {
        requireIdle("verify");
        for (Worker worker : workers) {
            if (worker.failure() != null) {
                return worker.getName() + " failed: " + worker.failure();
            }
            String wrong = worker.session().wrong();
            if (wrong != null) {
                return wrong;
            }
        }
        return null;
    }

    /** The client of a group, from 0, while no load is on. */
    public Session session(int group) throws Refused {
        requireIdle("looking at a group");
        return workers.get(group).session();
    }

    private long sum(ToLongFunction<Worker> figure) {
        return workers.stream().mapToLong(figure).sum();
    }

    private void requireIdle(String what) throws Refused {
        if (running) {
            throw new Refused(what + " must wait for stop: load is on");
        }
    }

    private void requireRunning(String what) throws Refused {
        if (!running) {
            throw new Refused(what + " comes after start: no load is on");
        }
        requireSound();
    }

    private void requireEnded() throws Refused {
        if (window != Window.ENDED) {
            throw new Refused("there is no result: begin and end come before it");
        }
    }

    private void requireSound() throws Refused {
        for (Worker worker : workers) {
            if (worker.failure() != null) {
                throw new Refused(worker.getName() + " failed: " + worker.failure());
            }
        }
    }
}
