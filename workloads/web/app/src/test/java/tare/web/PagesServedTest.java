package tare.web;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.util.List;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

class PagesServedTest extends OnSite {
    @BeforeEach
    void well() {
        site.backend.manner = FakeBackend.Manner.WELL;
        site.backend.queries.clear();
    }

    private static String member(String page) {
        return "/banking/" + page + "?user=" + Site.USER + "&token=" + Site.TOKEN;
    }

    private static Site.User loggedIn() throws Exception {
        Site.User user = site.user();
        user.page(member("login"));
        return user;
    }

    private static String head(String title, String proof) {
        return "<!DOCTYPE html><html><head><title>" + title + "</title><meta name=\"proof\" content=\"" + proof + "\">";
    }

    @Test
    void aPageIsExactToTheByte() throws Exception {
        HttpResponse<byte[]> response = site.user().get(member("login"));
        String query = "banking&1&" + Site.USER + "&" + Site.TOKEN;
        assertEquals(List.of(query), site.backend.queries);
        assertEquals("text/html", response.headers().firstValue("Content-Type").orElseThrow());
        assertEquals(4_000, response.body().length, "padded to what the table says");
        String page = new String(response.body(), StandardCharsets.UTF_8);
        assertTrue(page.startsWith(head("Bank: log in", FakeBackend.proof(query))), page);
        assertTrue(page.endsWith("</html>\n"));
        assertTrue(page.contains("<tr><td>12.50</td></tr>\n<tr><td>some text</td></tr>\n<tr><td>" + query.length()
                + "</td></tr>"), page);
        assertTrue(page.contains("<img src=\"/files/banking/images/login/00.gif\">\n"), page);
        assertTrue(page.contains("<img src=\"/files/banking/images/login/07.gif\">\n"), page);
        assertEquals(8, page.split("<img src=", -1).length - 1);
    }

    @Test
    void aPageThatIsLongerThanItsPaddingIsWhole() throws Exception {
        String page = site.user().page("/ecommerce/login?user=" + Site.USER + "&token=" + Site.TOKEN);
        assertTrue(page.startsWith(head("Shop: log in", FakeBackend.proof("ecommerce&10&" + Site.USER + "&"
                + Site.TOKEN))));
        assertTrue(page.endsWith("<pre>\n\n</pre></body></html>\n"), page);
        assertTrue(site.user().page("/support/home?token=" + Site.TOKEN).length() == 51_700);
    }

    @Test
    void embeddedAddressesCarryTheValues() throws Exception {
        String page = loggedIn().page("/banking/check_detail_html?user=" + Site.USER + "&check=000170&token="
                + Site.TOKEN);
        assertTrue(page.contains("<img src=\"/files/banking/checks/" + Site.USER
                + "/000170-front.gif\">\n<img src=\"/files/banking/checks/"
                + Site.USER + "/000170-back.gif\">\n"), page);
        assertEquals("banking&4&" + Site.USER + "&000170&" + Site.TOKEN, site.backend.queries.get(1));
        String product = site.user().page("/ecommerce/productdetail?product=00042-7&token=" + Site.TOKEN);
        assertTrue(product.contains("<img src=\"/files/ecommerce/products/00042/7-b.jpg\">"), product);
    }

    @Test
    void membersAreThoseWhoLoggedIn() throws Exception {
        Site.User user = site.user();
        assertEquals(403, user.get(member("account_summary")).statusCode());
        assertTrue(site.backend.queries.isEmpty(), "who may not see it costs the backend nothing");
        user.cookie = java.util.Optional.of("00000000000000000000000000000000");
        assertEquals(403, user.get(member("account_summary")).statusCode(), "a session that nobody began");
        user = loggedIn();
        assertTrue(user.page(member("account_summary")).contains("session: 2 pages, logged in as " + Site.USER));
        assertEquals(403, user.get("/banking/account_summary?user=0000000018&token=" + Site.TOKEN).statusCode(),
                "another's account");
        String cookie = user.cookie.orElseThrow();
        assertTrue(user.page(member("logout")).length() == 46_000);
        assertEquals(403, user.get(member("account_summary")).statusCode(), "after the logout");
        assertEquals(cookie, user.cookie.orElseThrow(), "the refusal begins no session");
        assertEquals(46_000, site.user().page(member("logout")).length(), "who has no session may leave, too");
    }

    @Test
    void anotherUserLogsInInTheSameSession() throws Exception {
        Site.User user = loggedIn();
        String page = user.page("/banking/login?user=0000000018&token=" + Site.TOKEN);
        assertTrue(page.contains("session: 1 page, logged in as 0000000018"), page);
        assertEquals(403, user.get(member("account_summary")).statusCode());
    }

    @Test
    void theCartHasWhatWasPutIntoIt() throws Exception {
        Site.User user = site.user();
        assertFalse(user.page("/ecommerce/productdetail?product=00042-7&token=" + Site.TOKEN).contains("id=\"cart\""));
        assertTrue(user.page("/ecommerce/cart?product=00042-7&quantity=2&token=" + Site.TOKEN)
                .contains("<tr><td>00042-7</td><td>2</td></tr>"));
        String both = user.page("/ecommerce/cart?product=00001-3&quantity=0&token=" + Site.TOKEN);
        assertTrue(both.contains("<tr><td>00042-7</td><td>2</td></tr>\n<tr><td>00001-3</td><td>1</td></tr>"), both);
        assertTrue(user.page("/ecommerce/cart?product=00042-7&quantity=5&token=" + Site.TOKEN)
                .contains("<tr><td>00042-7</td><td>5</td></tr>\n<tr><td>00001-3</td>"),
                "asked again it is how many there are to be");
        assertFalse(site.user().page("/ecommerce/index?user=" + Site.USER + "&token=" + Site.TOKEN).contains("00042-7"),
                "it is this user's alone");
        String who = "?user=" + Site.USER + "&token=" + Site.TOKEN;
        assertEquals(403, user.get("/ecommerce/confirm" + who).statusCode());
        assertTrue(user.page("/ecommerce/login" + who).contains("00042-7"), "it is kept when its user logs in");
        assertTrue(user.page("/ecommerce/confirm" + who).contains("<tr><td>00042-7</td><td>5</td></tr>"),
                "what is ordered");
        assertFalse(user.page("/ecommerce/index" + who).contains("id=\"cart\""), "nothing is left");
    }

    @Test
    void supportKeepsNothing() throws Exception {
        double before = site.stat("sessions");
        Site.User user = site.user();
        user.page("/support/home?token=" + Site.TOKEN);
        String cookie = user.cookie.orElseThrow();
        assertTrue(cookie.matches("[0-9A-F]{32}"), cookie);
        user.page("/support/home?token=" + Site.TOKEN);
        assertEquals(cookie, user.cookie.orElseThrow(), "it is set once");
        assertEquals(before, site.stat("sessions"));
    }

    @Test
    void badRequestsAreDistinguished() throws Exception {
        String[][] cases = {
            {"/banking/login", "400", "'user' is missing"},
            {"/banking/login?user=" + Site.USER, "400", "'token' is missing"},
            {"/banking/login?user=17&token=" + Site.TOKEN, "400", "'user' takes 10 digits"},
            {"/banking/login?user=000000001x&token=" + Site.TOKEN, "400", "'user' takes 10 digits"},
            {"/banking/login?user=" + Site.USER + "&token=0123456789ABCDEG", "400", "'token' takes 16"},
            {"/banking/login?user=" + Site.USER + "&user=" + Site.USER + "&token=" + Site.TOKEN, "400", "twice"},
            {"/banking/login?user=" + Site.USER + "&token=" + Site.TOKEN + "&more=1", "400", "too many"},
            {"/banking/login?user", "400", "NAME=VALUE"},
            {"/banking/login?user=" + Site.USER + "&&token=" + Site.TOKEN, "400", "NAME=VALUE"},
            {"/ecommerce/productdetail?product=00042x7&token=" + Site.TOKEN, "400", "'product' takes 5 digits"},
            {"/ecommerce/cart?product=00042-7&quantity=99999999999&token=" + Site.TOKEN, "400",
                    "'quantity' takes 1 to 10"},
            {"/banking/nothing", "404", "no such page"},
            {"/banking", "404", "no such page"},
            {"/", "404", "no such page"},
            {"/pages.tsv", "404", "no such page"},
            {"/tare/other", "404", "no such page"},
        };
        double before = site.stat("errors");
        for (String[] one : cases) {
            HttpResponse<byte[]> response = site.user().get(one[0]);
            assertEquals(Integer.parseInt(one[1]), response.statusCode(), one[0]);
            assertTrue(new String(response.body(), StandardCharsets.UTF_8).contains(one[2]), one[0]);
        }
        assertEquals(before + cases.length, site.stat("errors"));
        assertTrue(site.backend.queries.isEmpty());
        String turned = "/banking/login?token=" + Site.TOKEN + "&user=" + Site.USER;
        site.user().page(turned);
        assertEquals("banking&1&" + Site.USER + "&" + Site.TOKEN, site.backend.queries.get(0),
                "in the order of the table");
    }

    @Test
    void whatTheBackendSaysIsShownAsItIs() throws Exception {
        site.backend.manner = FakeBackend.Manner.OTHER_PROOF;
        String page = site.user().page("/support/home?token=" + Site.TOKEN);
        assertTrue(page.startsWith(head("Support", "ffffffffffffffff")), "the server does not invent: "
                + page.substring(0, 200));
        site.backend.manner = FakeBackend.Manner.MARKUP;
        assertTrue(site.user().page("/support/home?token=" + Site.TOKEN)
                .contains("<td>&quot;&lt;script&gt;&quot;</td>"));
        site.backend.manner = FakeBackend.Manner.IN_PIECES;
        assertTrue(site.user().page("/support/home?token=" + Site.TOKEN)
                .startsWith(head("Support", FakeBackend.proof("support&1&" + Site.TOKEN))));
    }

    @Test
    void whatItDoesIsReported() throws Exception {
        assertEquals("ready", new String(site.user().get("/tare/ready").body(), StandardCharsets.UTF_8));
        double pages = site.stat("pages");
        double calls = site.stat("backend_calls");
        loggedIn();
        assertEquals(pages + 1, site.stat("pages"));
        assertEquals(calls + 1, site.stat("backend_calls"));
        assertEquals(site.stat("requests"), site.stat("pages") + site.stat("files") + site.stat("errors"));
        assertTrue(site.stat("sessions_most") >= site.stat("sessions") && site.stat("sessions") >= 1);
        for (String name : List.of("backend_seconds", "backend_p99_seconds", "heap_used_bytes", "heap_committed_bytes",
                "cpu_seconds")) {
            assertTrue(site.stat(name) > 0, name);
        }
        assertTrue(site.stat("collections") >= 0 && site.stat("collection_seconds") >= 0);
        assertEquals(0, site.stat("tls_connections"));
    }
}
