/** An embedded servlet container: how it listens, its files, its status. */
package tare.common.server;
