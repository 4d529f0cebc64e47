package tare.social.data;

import java.net.InetSocketAddress;

/**
 * Where a database is.
 *
 * @param server its address
 * @param name of the database
 * @param user as whom it is used, without a password
 */
public record Place(InetSocketAddress server, String name, String user) {
    @Override
    public String toString() {
        return server.getAddress().getHostAddress() + ":" + server.getPort() + "/" + name;
    }
}
