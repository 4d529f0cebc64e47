package tare.web;

import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.InvalidPathException;
import java.nio.file.attribute.BasicFileAttributes;
import org.apache.catalina.WebResource;
import org.apache.catalina.WebResourceRoot;
import org.apache.catalina.webresources.DirResourceSet;
import org.apache.catalina.webresources.FileResource;

/**
 * The folder of files, for the container's servlet. Most files are asked for so seldom that nothing of them is cached;
 * the container would ask the kernel a dozen times what there is, and keep a lock for those that write, of whom there
 * are none. Here it is asked once a request.
 */
final class DataFiles extends DirResourceSet {
    private static final String MOUNT = "/files";

    DataFiles(WebResourceRoot root, File folder) {
        super(root, MOUNT, folder.getPath(), "/");
    }

    @Override
    public WebResource getResource(String path) {
        // The container has taken out of it what would lead elsewhere.
        if (path.startsWith(MOUNT + "/") && !path.endsWith("/")) {
            try {
                File file = new File(getFileBase(), path.substring(MOUNT.length() + 1));
                BasicFileAttributes seen = Files.readAttributes(file.toPath(), BasicFileAttributes.class);
                if (seen.isRegularFile()) {
                    return new Seen(getRoot(), path, file, seen);
                }
            } catch (IOException | InvalidPathException e) {
                // There is no such file, or it may not be read: the container answers as usual.
            }
        }
        return super.getResource(path);
    }

    /** A file as it was when it was asked for. */
    private static final class Seen extends FileResource {
        private final File file;
        private final long changed;
        private final long length;

        Seen(WebResourceRoot root, String path, File file, BasicFileAttributes seen) {
            super(root, path, file, true, null);
            this.file = file;
            changed = seen.lastModifiedTime().toMillis();
            length = seen.size();
        }

        @Override
        public boolean exists() {
            return true;
        }

        @Override
        public boolean isFile() {
            return true;
        }

        @Override
        public boolean isDirectory() {
            return false;
        }

        @Override
        public long getLastModified() {
            return changed;
        }

        @Override
        public long getContentLength() {
            return length;
        }

        @Override
        public String getCanonicalPath() {
            // It is what the kernel is to send; links in the folder are meant.
            return file.getPath();
        }
    }
}
