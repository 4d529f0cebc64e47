/** How a driver outside directs the application: lines of ASCII on one connection. */
package tare.business.control;
