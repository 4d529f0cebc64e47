/** A three-tier business application in one virtual machine: its command line. */
package tare.business;
