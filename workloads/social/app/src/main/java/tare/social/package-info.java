/** A social web application on an embedded servlet container: people, events, tags, attendance, pictures. */
package tare.social;
