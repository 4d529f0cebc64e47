package tare.common.server;

import jakarta.servlet.http.HttpSession;

/** Sessions, which another request or their age may end at any time; null is none. */
public final class Sessions {
    private Sessions() {}

    /** What a session has under that name; null where it has nothing. */
    public static Object get(HttpSession session, String name) {
        try {
            return session == null ? null : session.getAttribute(name);
        } catch (IllegalStateException e) {
            return null;
        }
    }

    /** Ends a session. */
    public static void end(HttpSession session) {
        try {
            if (session != null) {
                session.invalidate();
            }
        } catch (IllegalStateException e) {
            // It has ended already.
        }
    }
}
