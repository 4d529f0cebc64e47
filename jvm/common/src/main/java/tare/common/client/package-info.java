/** Kept HTTP connections to another server. */
package tare.common.client;
