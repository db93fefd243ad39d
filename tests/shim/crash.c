/*
 * Ends a process at a chosen file operation, or makes that operation fail or slow: loaded with LD_PRELOAD into the
 * shipped binaries, which are not changed for it.
 *
 *   CRASH_UNDER  only files below this folder count (required; without it the shim does nothing)
 *   CRASH_AT     the number of the operation, from 1, before which the process gets SIGKILL
 *   CRASH_FAIL   "eio" or "enospc": the operation at CRASH_AT fails so instead
 *   CRASH_SLOW   microseconds added to every fsync and fdatasync
 *   CRASH_COUNT  a file that holds the number of operations so far, for choosing CRASH_AT
 *
 * Operations: write, pwrite, writev, fsync, fdatasync, ftruncate, rename, link, unlink, on regular files, and
 * fsync on folders.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

static atomic_long operations;

static const char *under(void) { return getenv("CRASH_UNDER"); }

static int below(const char *path) {
    const char *root = under();
    size_t length = root ? strlen(root) : 0;
    return length && strncmp(path, root, length) == 0 && (path[length] == '/' || path[length] == '\0');
}

static int counts(int fd) {
    struct stat st;
    char link[64], path[PATH_MAX];
    /* Folders are flushed too, so that names survive. */
    if (!under() || fstat(fd, &st) != 0 || !(S_ISREG(st.st_mode) || S_ISDIR(st.st_mode))) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0) return 0;
    path[length] = '\0';
    /* Shared memory of the database's index is no durable state. */
    if (length > 4 && strcmp(path + length - 4, "-shm") == 0) return 0;
    return below(path);
}

static void note(long number) {
    const char *file = getenv("CRASH_COUNT");
    if (!file) return;
    static int (*real_open)(const char *, int, ...);
    static ssize_t (*real_pwrite)(int, const void *, size_t, off_t);
    if (!real_open) real_open = dlsym(RTLD_NEXT, "open");
    if (!real_pwrite) real_pwrite = dlsym(RTLD_NEXT, "pwrite");
    char text[32];
    int length = snprintf(text, sizeof text, "%-20ld\n", number);
    int fd = real_open(file, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0) return;
    real_pwrite(fd, text, (size_t)length, 0);
    close(fd);
}

/* Counts an operation; returns the errno to fail with, or 0. */
static int operation(void) {
    long number = atomic_fetch_add(&operations, 1) + 1;
    note(number);
    const char *at = getenv("CRASH_AT");
    if (!at || number != atol(at)) return 0;
    const char *fail = getenv("CRASH_FAIL");
    if (fail && strcmp(fail, "eio") == 0) return EIO;
    if (fail && strcmp(fail, "enospc") == 0) return ENOSPC;
    kill(getpid(), SIGKILL);
    for (;;) pause();
}

static void slow(void) {
    const char *micros = getenv("CRASH_SLOW");
    if (!micros) return;
    long value = atol(micros);
    struct timespec pause_for = {value / 1000000, (value % 1000000) * 1000};
    nanosleep(&pause_for, NULL);
}

#define ON_FD(result, name, arguments, call, before)                                                                   \
    result name arguments {                                                                                            \
        static result(*real) arguments;                                                                                \
        if (!real) real = dlsym(RTLD_NEXT, #name);                                                                     \
        if (counts(fd)) {                                                                                              \
            int error = operation();                                                                                   \
            if (error) {                                                                                               \
                errno = error;                                                                                         \
                return -1;                                                                                             \
            }                                                                                                          \
            before;                                                                                                    \
        }                                                                                                              \
        return real call;                                                                                              \
    }

ON_FD(ssize_t, write, (int fd, const void *data, size_t size), (fd, data, size), (void)0)
ON_FD(ssize_t, pwrite, (int fd, const void *data, size_t size, off_t at), (fd, data, size, at), (void)0)
ON_FD(ssize_t, pwrite64, (int fd, const void *data, size_t size, off64_t at), (fd, data, size, at), (void)0)
ON_FD(ssize_t, writev, (int fd, const struct iovec *parts, int count), (fd, parts, count), (void)0)
ON_FD(int, fsync, (int fd), (fd), slow())
ON_FD(int, fdatasync, (int fd), (fd), slow())
ON_FD(int, ftruncate, (int fd, off_t size), (fd, size), (void)0)
ON_FD(int, ftruncate64, (int fd, off64_t size), (fd, size), (void)0)

/* A path relative to a descriptor counts when the descriptor's folder does. */
static int counts_at(int dir, const char *path) {
    char link[64], folder[PATH_MAX];
    if (!under()) return 0;
    if (path[0] == '/') return below(path);
    if (dir == AT_FDCWD) return getcwd(folder, sizeof folder) && below(folder);
    snprintf(link, sizeof link, "/proc/self/fd/%d", dir);
    ssize_t length = readlink(link, folder, sizeof folder - 1);
    if (length < 0) return 0;
    folder[length] = '\0';
    return below(folder);
}

#define ON_PATH(name, arguments, call, dir, path)                                                                      \
    int name arguments {                                                                                               \
        static int(*real) arguments;                                                                                   \
        if (!real) real = dlsym(RTLD_NEXT, #name);                                                                     \
        if (counts_at(dir, path)) {                                                                                    \
            int error = operation();                                                                                   \
            if (error) {                                                                                               \
                errno = error;                                                                                         \
                return -1;                                                                                             \
            }                                                                                                          \
        }                                                                                                              \
        return real call;                                                                                              \
    }

ON_PATH(rename, (const char *from, const char *to), (from, to), AT_FDCWD, to)
ON_PATH(renameat, (int from_dir, const char *from, int to_dir, const char *to), (from_dir, from, to_dir, to), to_dir, to)
ON_PATH(renameat2, (int from_dir, const char *from, int to_dir, const char *to, unsigned flags),
        (from_dir, from, to_dir, to, flags), to_dir, to)
ON_PATH(linkat, (int from_dir, const char *from, int to_dir, const char *to, int flags),
        (from_dir, from, to_dir, to, flags), to_dir, to)
ON_PATH(unlink, (const char *path), (path), AT_FDCWD, path)
ON_PATH(unlinkat, (int dir, const char *path, int flags), (dir, path, flags), dir, path)
