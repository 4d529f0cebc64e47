/** The clients: a thread a data group, which offers transactions as its schedule says. */
package tare.business.client;
