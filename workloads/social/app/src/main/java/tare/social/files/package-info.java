/** Files: the store of pictures and documents with the geocoder beside it, and the site's own static ones. */
package tare.social.files;
