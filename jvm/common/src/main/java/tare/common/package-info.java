/** What the Java applications share: their command line, reports in JSON, figures of the virtual machine, text of pages. */
package tare.common;
