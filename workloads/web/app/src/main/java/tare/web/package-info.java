/** Web sites on an embedded servlet container: pages made with a backend's answers, sessions, files from the disk. */
package tare.web;
