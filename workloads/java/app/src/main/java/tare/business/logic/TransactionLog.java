package tare.business.logic;

import java.math.BigDecimal;
import java.time.Instant;
import javax.xml.parsers.DocumentBuilder;
import javax.xml.parsers.DocumentBuilderFactory;
import javax.xml.parsers.ParserConfigurationException;
import org.w3c.dom.Document;
import org.w3c.dom.Element;
import org.w3c.dom.Node;
import tare.business.store.Money;

/** A log of each transaction: an XML document that is built in memory, walked once, and dropped. */
public final class TransactionLog {
    private final DocumentBuilder builder;
    private Document document;
    private Element root;
    private long nodes;
    private long sum;
    private BigDecimal audited = Money.ZERO;

    /** A log of its own for each thread. */
    public TransactionLog() {
        try {
            builder = DocumentBuilderFactory.newDefaultInstance().newDocumentBuilder();
        } catch (ParserConfigurationException e) {
            throw new IllegalStateException("this Java makes no XML documents", e);
        }
    }

    /** Begins the document of a transaction. */
    public void begin(Kind kind, int group, long date) {
        document = builder.newDocument();
        root = document.createElement(kind.id());
        document.appendChild(root);
        put(root, "group", group);
        put(root, "date", date(date));
    }

    /** An element within the outermost one. */
    public Element element(String name) {
        return element(root, name);
    }

    /** An element within another one. */
    public Element element(Element parent, String name) {
        Element element = document.createElement(name);
        parent.appendChild(element);
        return element;
    }

    /** The outermost element. */
    public Element root() {
        return root;
    }

    /** An element with text. */
    public void put(Element parent, String name, String text) {
        element(parent, name).appendChild(document.createTextNode(text));
    }

    /** A date as text; dates are seconds since 1970. */
    static String date(long date) {
        return Instant.ofEpochSecond(date).toString();
    }

    /** An element with a number. */
    public void put(Element parent, String name, long number) {
        put(parent, name, Long.toString(number));
    }

    /** An element with an amount of money. */
    public void put(Element parent, String name, BigDecimal amount) {
        put(parent, name, amount.toPlainString());
    }

    /** Walks the whole document, adds up the amounts that it names, and drops it. */
    public void end() {
        audited = Money.ZERO;
        walk(root);
        sum = sum * 31 + audited.hashCode();
        document = null;
        root = null;
    }

    private void walk(Node node) {
        nodes++;
        String text = node.getNodeType() == Node.TEXT_NODE ? node.getNodeValue() : node.getNodeName();
        long mixed = sum;
        for (int i = 0; i < text.length(); i++) {
            mixed = mixed * 31 + text.charAt(i);
        }
        sum = mixed;
        if (text.equals("amount")) {
            audited = audited.add(new BigDecimal(node.getTextContent()));
        }
        for (Node child = node.getFirstChild(); child != null; child = child.getNextSibling()) {
            walk(child);
        }
    }

    /** Nodes of all documents so far. */
    public long nodes() {
        return nodes;
    }

    /** A sum over the texts of all documents so far: the same for the same transactions. */
    public long sum() {
        return sum;
    }
}
