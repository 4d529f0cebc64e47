/** What is measured: operations by each thread without locks or allocation, and the virtual machine as a whole. */
package tare.business.measure;
