/* The first process of a guest made by hand: loads what it needs, mounts the host's root under an overlay as tare's agent
 * does, and says over the virtio port that it is ready. Built statically by bench/start.sh. */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Lines of tare's list: a feature, then files in the order of loading. */
static const char *const wanted[] = {"pci", "virtio-1", "virtio-3", "virtio-26", "overlay"};

static void load(const char *path) {
    int file = open(path, O_RDONLY | O_CLOEXEC);
    /* One that is loaded already, for a line before, is refused: that is no matter. */
    if (file >= 0) {
        syscall(SYS_finit_module, file, "", 0);
        close(file);
    }
}

static void load_all(void) {
    char line[4096];
    FILE *list = fopen("/modules.load", "re");
    while (list && fgets(line, sizeof line, list)) {
        char *word = strtok(line, " \n");
        for (size_t i = 0; word && i < sizeof wanted / sizeof *wanted; i++)
            if (!strcmp(word, wanted[i]))
                for (char *path = strtok(NULL, " \n"); path; path = strtok(NULL, " \n"))
                    load(path);
    }
}

static int open_port(void) {
    for (;;) {
        DIR *ports = opendir("/sys/class/virtio-ports");
        for (struct dirent *port; ports && (port = readdir(ports));)
            if (port->d_name[0] == 'v') {
                char path[300];
                snprintf(path, sizeof path, "/dev/%s", port->d_name);
                int file = open(path, O_RDWR);
                if (file >= 0)
                    return file;
            }
        if (ports)
            closedir(ports);
        usleep(500);
    }
}

int main(void) {
    mkdir("/dev", 0755), mkdir("/proc", 0755), mkdir("/sys", 0755), mkdir("/host", 0755), mkdir("/rw", 0755), mkdir("/new", 0755);
    mount("dev", "/dev", "devtmpfs", 0, "");
    mount("proc", "/proc", "proc", 0, "");
    mount("sys", "/sys", "sysfs", 0, "");
    load_all();
    int bad = mount("hostroot", "/host", "virtiofs", MS_RDONLY, "");
    bad |= mount("rw", "/rw", "tmpfs", 0, "");
    mkdir("/rw/upper", 0755), mkdir("/rw/work", 0755);
    bad |= mount("root", "/new", "overlay", 0, "lowerdir=/host,upperdir=/rw/upper,workdir=/rw/work");
    int port = open_port();
    dprintf(port, bad ? "no root\n" : "ready\n");
    pause();
}
