/** What the tests of the Java applications share. */
package tare.testing;
