/** The business logic: six kinds of transactions on the object store. */
package tare.business.logic;
