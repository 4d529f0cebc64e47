/** What the application keeps: the database, and the objects that were read from it. */
package tare.social.data;
