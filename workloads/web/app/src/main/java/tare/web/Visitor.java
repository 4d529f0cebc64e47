package tare.web;

import java.util.LinkedHashMap;
import java.util.Map;
import tare.common.Text;

/**
 * What the server knows of the user of a session: who it is, how many pages it has had, what is in its cart. A browser
 * may ask for two pages at once, therefore the locks.
 */
final class Visitor {
    /** Under this name a session has it. */
    static final String NAME = "visitor";
    /** More kinds of products are not put into a cart; the oldest gives way. */
    private static final int MOST_LINES = 100;

    private String user;
    private boolean member;
    private long pages;
    /** The product that was looked at last. */
    private String product;
    /** Products and how many of each, in the order in which they came. */
    private final Map<String, Integer> cart = new LinkedHashMap<>();

    /** From now on a member; another user than before begins anew. */
    synchronized void login(String who) {
        if (member && user != null && !user.equals(who)) {
            pages = 0;
            cart.clear();
        }
        user = who;
        member = true;
    }

    /** Whether that user, or any where the page does not say which, has logged in here. */
    synchronized boolean isMember(String who) {
        return member && (who == null || user == null || who.equals(user));
    }

    /** A page was made: counts it, and does with the cart what the page is for. */
    synchronized void saw(Page page, String[] values) {
        pages++;
        String here = page.value(values, Parameter.Shape.PRODUCT);
        if (here != null) {
            product = here;
        }
        if (page.name.equals("cart") && product != null) {
            put(product, page.value(values, "quantity"));
        }
    }

    /** A page of which an order is the subject has been shown: nothing is left to be ordered. */
    synchronized void after(Page page) {
        if (page.name.equals("confirm")) {
            cart.clear();
        }
    }

    private void put(String what, String quantity) {
        // Asked again it is how many there are to be; none is at least one, for the cart has it.
        int many = quantity == null ? 1 : (int) Math.max(1, Math.min(Long.parseLong(quantity), 9_999));
        if (cart.put(what, many) == null && cart.size() > MOST_LINES) {
            cart.remove(cart.keySet().iterator().next());
        }
    }

    /** Shows the state on a page. */
    synchronized void show(Text page) {
        page.put("<p>session: ").put(pages).put(pages == 1 ? " page" : " pages");
        if (member) {
            page.put(", logged in");
            if (user != null) {
                page.put(" as ").put(user);
            }
        }
        page.put("</p>\n");
        if (!cart.isEmpty()) {
            page.put("<table id=\"cart\">\n");
            cart.forEach((what, many) -> page.put("<tr><td>").put(what).put("</td><td>").put(many).put("</td></tr>\n"));
            page.put("</table>\n");
        }
    }
}
