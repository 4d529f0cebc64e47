/**
 * The object store: a company, its items, its customers and its data groups, in collections of the language.
 *
 * <p>A data group and its customers are used by one thread, the group's. Items never change.
 */
package tare.business.store;
