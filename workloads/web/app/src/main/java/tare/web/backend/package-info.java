/** What stands for the application's database: asked over kept connections, once a page. */
package tare.web.backend;
