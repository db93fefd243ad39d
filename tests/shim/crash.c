/*
 * Ends a process at a chosen operation, or makes operations fail or slow: loaded with LD_PRELOAD into the shipped
 * binaries, which are not changed for it.
 *
 *   CRASH_UNDER  only files below this folder count (required; without it the shim does nothing)
 *   CRASH_ON     what is counted: "files" (the default), "flushes" (fsync and fdatasync alone), "sockets" (what is sent
 *                to the network)
 *   CRASH_PATH   of the files only those whose path contains this
 *   CRASH_ARM    nothing is counted as long as this file does not exist
 *   CRASH_AT     the number of the operation, from 1, before which the process gets SIGKILL
 *   CRASH_AFTER  the process gets it after that operation
 *   CRASH_TORN   a write that the process ends with still writes so many thousandths of its bytes
 *   CRASH_FAIL   "eio", "enospc" or "erofs": the operation at CRASH_AT fails so instead. A full disk refuses what needs
 *                space: writes, longer files, new names
 *   CRASH_WHILE  from CRASH_AT on all fail as long as this file exists
 *   CRASH_LOSE   a flush that fails loses what was written into its file since the last one that did not
 *   CRASH_SLOW   microseconds added to every fsync and fdatasync
 *   CRASH_COUNT  a file that holds the number of operations so far, for choosing CRASH_AT
 *   CRASH_LOG    a file that gets a line for each operation that failed, and for each descriptor that is flushed again
 *                after that failed
 *
 * Operations: write, pwrite, writev, fsync, fdatasync, ftruncate, rename, link, unlink, mkdir and the making of files, on
 * regular files, and fsync on folders.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

/* What an operation does; a full disk refuses some kinds and not others. */
enum kind { TAKES_SPACE, FLUSHES, FREES_SPACE, SENDS };

#define REAL(result, name, arguments)                                                                                  \
    static result(*real) arguments;                                                                                    \
    if (!real) real = dlsym(RTLD_NEXT, #name)

static atomic_long operations;

static const char *under(void) { return getenv("CRASH_UNDER"); }

static int is_set(const char *name, const char *value) {
    const char *found = getenv(name);
    return found && strcmp(found, value) == 0;
}

static int below(const char *path) {
    const char *root = under();
    size_t length = root ? strlen(root) : 0;
    return length && strncmp(path, root, length) == 0 && (path[length] == '/' || path[length] == '\0');
}

/* The path of a descriptor. */
static int path_of(int fd, char path[PATH_MAX]) {
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, PATH_MAX - 1);
    if (length < 0) return 0;
    path[length] = '\0';
    return 1;
}

static int counts(int fd, char path[PATH_MAX]) {
    struct stat st;
    /* Folders are flushed too, so that names survive. */
    if (!under() || fstat(fd, &st) != 0 || !(S_ISREG(st.st_mode) || S_ISDIR(st.st_mode))) return 0;
    if (!path_of(fd, path)) return 0;
    /* Shared memory of the database's index is no durable state. It takes space, though. */
    size_t length = strlen(path);
    if (length > 4 && strcmp(path + length - 4, "-shm") == 0 && !is_set("CRASH_FAIL", "enospc")) return 0;
    return below(path);
}

static void put(const char *file, int flags, const char *text, size_t length) {
    static int (*real_open)(const char *, int, ...);
    static ssize_t (*real_write)(int, const void *, size_t);
    if (!real_open) real_open = dlsym(RTLD_NEXT, "open");
    if (!real_write) real_write = dlsym(RTLD_NEXT, "write");
    int fd = real_open(file, O_WRONLY | O_CREAT | O_CLOEXEC | flags, 0600);
    if (fd < 0) return;
    if (real_write(fd, text, length) < 0) abort();
    close(fd);
}

static void count_to(long number) {
    const char *file = getenv("CRASH_COUNT");
    char text[32];
    if (file) put(file, 0, text, (size_t)snprintf(text, sizeof text, "%-20ld\n", number));
}

static void tell(const char *what, const char *name, const char *path) {
    const char *file = getenv("CRASH_LOG");
    char text[PATH_MAX + 128];
    if (!file) return;
    int length = snprintf(text, sizeof text, "%s %s %s\n", what, name, path);
    put(file, O_APPEND, text, length < (int)sizeof text ? (size_t)length : sizeof text - 1);
}

static void end(void) {
    kill(getpid(), SIGKILL);
    for (;;) pause();
}

/* What is to become of an operation. */
enum fate { GOES_ON, ENDS_AFTER, ENDS, FAILS };

static int failure(enum kind kind) {
    if (is_set("CRASH_FAIL", "eio")) return EIO;
    if (is_set("CRASH_FAIL", "erofs")) return EROFS;
    return is_set("CRASH_FAIL", "enospc") && kind == TAKES_SPACE ? ENOSPC : 0;
}

/* Counts an operation and says what becomes of it; one that fails does so with errno as it is set here. */
static enum fate operation(enum kind kind, const char *name, const char *path) {
    const char *only = getenv("CRASH_PATH"), *arm = getenv("CRASH_ARM"), *at = getenv("CRASH_AT");
    const char *on = getenv("CRASH_ON"), *during = getenv("CRASH_WHILE");
    int is_counted = !on || strcmp(on, "files") == 0   ? kind != SENDS
                     : strcmp(on, "flushes") == 0      ? kind == FLUSHES
                                                       : kind == SENDS;
    if (!is_counted || (only && !strstr(path, only)) || (arm && access(arm, F_OK) != 0)) return GOES_ON;
    long number = atomic_fetch_add(&operations, 1) + 1, chosen = at ? atol(at) : 0;
    count_to(number);
    if (!at || number < chosen) return GOES_ON;
    if (getenv("CRASH_FAIL")) {
        int error = failure(kind);
        int fails = number == chosen || (during && access(during, F_OK) == 0);
        if (!error || !fails) return GOES_ON;
        tell("failed", name, path);
        errno = error;
        return FAILS;
    }
    if (number > chosen) return GOES_ON;
    tell("ended", name, path);
    return getenv("CRASH_AFTER") ? ENDS_AFTER : ENDS;
}

/* What was written since the last flush, newest first, so that a flush that fails can lose it. */
struct change {
    struct change *older;
    dev_t device;
    ino_t inode;
    off_t size, at;
    size_t length;
    char old[];
};
static struct change *changes;
static pthread_mutex_t changing = PTHREAD_MUTEX_INITIALIZER;

static void remember(int fd, off_t at, size_t size) {
    struct stat st;
    if (!getenv("CRASH_LOSE") || fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) return;
    off_t last = at + (off_t)size < st.st_size ? at + (off_t)size : st.st_size;
    size_t length = last > at ? (size_t)(last - at) : 0;
    struct change *change = malloc(sizeof *change + length);
    if (!change) return;
    *change = (struct change){.device = st.st_dev, .inode = st.st_ino, .size = st.st_size, .at = at, .length = length};
    /* A descriptor that cannot be read (a new file's) had nothing to lose but its length. */
    if (length && pread(fd, change->old, length, at) != (ssize_t)length) change->length = 0;
    pthread_mutex_lock(&changing);
    change->older = changes;
    changes = change;
    pthread_mutex_unlock(&changing);
}

/* Forgets the changes of a file that was flushed, or undoes them. */
static void flushed(int fd, int undo) {
    static ssize_t (*real_pwrite)(int, const void *, size_t, off_t);
    static int (*real_ftruncate)(int, off_t);
    struct stat st;
    if (!getenv("CRASH_LOSE") || fstat(fd, &st) != 0) return;
    if (!real_pwrite) real_pwrite = dlsym(RTLD_NEXT, "pwrite");
    if (!real_ftruncate) real_ftruncate = dlsym(RTLD_NEXT, "ftruncate");
    pthread_mutex_lock(&changing);
    for (struct change **place = &changes; *place;) {
        struct change *change = *place;
        if (change->device != st.st_dev || change->inode != st.st_ino) {
            place = &change->older;
            continue;
        }
        if (undo) {
            if (change->length && real_pwrite(fd, change->old, change->length, change->at) < 0) abort();
            if (real_ftruncate(fd, change->size) != 0) abort();
        }
        *place = change->older;
        free(change);
    }
    pthread_mutex_unlock(&changing);
}

/* Descriptors whose flush failed: 1, and 2 once they were written to again. */
#define DESCRIPTORS 4096
static atomic_uchar failed_flush[DESCRIPTORS];

static void wrote(int fd) {
    unsigned char one = 1;
    if (fd >= 0 && fd < DESCRIPTORS) atomic_compare_exchange_strong(&failed_flush[fd], &one, 2);
}

int close(int fd) {
    REAL(int, close, (int));
    if (fd >= 0 && fd < DESCRIPTORS) atomic_store(&failed_flush[fd], 0);
    return real(fd);
}

/* Bytes that go to another machine, or to another program as if it were one. */
static int is_network(int fd) {
    struct sockaddr_storage name;
    socklen_t length = sizeof name;
    return under() && getsockname(fd, (struct sockaddr *)&name, &length) == 0 &&
           (name.ss_family == AF_INET || name.ss_family == AF_INET6);
}

#define ON_SEND(call)                                                                                                  \
    if (is_network(fd)) {                                                                                              \
        enum fate fate = operation(SENDS, "send", "");                                                                 \
        if (fate == ENDS) end();                                                                                       \
        ssize_t sent = call;                                                                                           \
        if (fate == ENDS_AFTER) end();                                                                                 \
        return sent;                                                                                                   \
    }

/* How much of its last write a process still writes. */
static size_t torn(size_t size) {
    const char *share = getenv("CRASH_TORN");
    return share ? size * strtoul(share, NULL, 10) / 1000 : 0;
}

#define ON_WRITE(name, arguments, first, call, at, size, call_of_part)                                                 \
    ssize_t name arguments {                                                                                           \
        REAL(ssize_t, name, arguments);                                                                                \
        char path[PATH_MAX];                                                                                           \
        first if (!counts(fd, path)) return call;                                                                      \
        enum fate fate = operation(TAKES_SPACE, #name, path);                                                          \
        if (fate == FAILS) return -1;                                                                                  \
        if (fate == ENDS) {                                                                                            \
            size_t part = torn(size);                                                                                  \
            if (part && call_of_part < 0) abort();                                                                     \
            end();                                                                                                     \
        }                                                                                                              \
        if (getenv("CRASH_LOSE")) remember(fd, at, size);                                                              \
        wrote(fd);                                                                                                     \
        ssize_t done = call;                                                                                           \
        if (fate == ENDS_AFTER) end();                                                                                 \
        return done;                                                                                                   \
    }

static off_t place_of(int fd) {
    int flags = fcntl(fd, F_GETFL);
    return lseek(fd, 0, flags >= 0 && (flags & O_APPEND) ? SEEK_END : SEEK_CUR);
}

static size_t length_of(const struct iovec *parts, int count) {
    size_t length = 0;
    for (int part = 0; part < count; part++) length += parts[part].iov_len;
    return length;
}

ON_WRITE(write, (int fd, const void *data, size_t size), ON_SEND(real(fd, data, size)), real(fd, data, size),
         place_of(fd), size, real(fd, data, part))
ON_WRITE(writev, (int fd, const struct iovec *parts, int count), ON_SEND(real(fd, parts, count)),
         real(fd, parts, count), place_of(fd), length_of(parts, count), real(fd, parts, 1))
ON_WRITE(pwrite, (int fd, const void *data, size_t size, off_t at), , real(fd, data, size, at), at, size,
         real(fd, data, part, at))
ON_WRITE(pwrite64, (int fd, const void *data, size_t size, off64_t at), , real(fd, data, size, at), at, size,
         real(fd, data, part, at))

ssize_t send(int fd, const void *data, size_t size, int flags) {
    REAL(ssize_t, send, (int, const void *, size_t, int));
    ON_SEND(real(fd, data, size, flags))
    return real(fd, data, size, flags);
}

ssize_t sendmsg(int fd, const struct msghdr *message, int flags) {
    REAL(ssize_t, sendmsg, (int, const struct msghdr *, int));
    ON_SEND(real(fd, message, flags))
    return real(fd, message, flags);
}

static void slow(void) {
    const char *micros = getenv("CRASH_SLOW");
    if (!micros) return;
    long value = atol(micros);
    struct timespec pause_for = {value / 1000000, (value % 1000000) * 1000};
    nanosleep(&pause_for, NULL);
}

#define ON_FLUSH(name)                                                                                                 \
    int name(int fd) {                                                                                                 \
        REAL(int, name, (int));                                                                                        \
        char path[PATH_MAX];                                                                                           \
        if (!counts(fd, path)) return real(fd);                                                                        \
        int is_tracked = fd >= 0 && fd < DESCRIPTORS;                                                                  \
        unsigned char before = is_tracked ? atomic_load(&failed_flush[fd]) : 0;                                        \
        if (before) tell(before == 1 ? "again" : "rewritten", #name, path);                                            \
        enum fate fate = operation(FLUSHES, #name, path);                                                              \
        if (fate == FAILS) {                                                                                           \
            int error = errno;                                                                                         \
            if (is_tracked) atomic_store(&failed_flush[fd], 1);                                                        \
            flushed(fd, 1);                                                                                            \
            errno = error;                                                                                             \
            return -1;                                                                                                 \
        }                                                                                                              \
        if (fate == ENDS) end();                                                                                       \
        slow();                                                                                                        \
        int done = real(fd);                                                                                           \
        if (done == 0) flushed(fd, 0);                                                                                 \
        if (fate == ENDS_AFTER) end();                                                                                 \
        return done;                                                                                                   \
    }

ON_FLUSH(fsync)
ON_FLUSH(fdatasync)

#define ON_LENGTH(name, off)                                                                                           \
    int name(int fd, off size) {                                                                                       \
        REAL(int, name, (int, off));                                                                                   \
        char path[PATH_MAX];                                                                                           \
        struct stat st;                                                                                                \
        if (!counts(fd, path) || fstat(fd, &st) != 0) return real(fd, size);                                           \
        enum fate fate = operation(size > st.st_size ? TAKES_SPACE : FREES_SPACE, #name, path);                        \
        if (fate == FAILS) return -1;                                                                                  \
        if (fate == ENDS) end();                                                                                       \
        off_t least = size < st.st_size ? size : st.st_size;                                                           \
        remember(fd, least, (size_t)(st.st_size - least));                                                             \
        wrote(fd);                                                                                                     \
        int done = real(fd, size);                                                                                     \
        if (fate == ENDS_AFTER) end();                                                                                 \
        return done;                                                                                                   \
    }

ON_LENGTH(ftruncate, off_t)
ON_LENGTH(ftruncate64, off64_t)

/* Where a path leads; one that is relative to a descriptor begins at the descriptor's folder. */
static int resolve(int dir, const char *path, char whole[PATH_MAX]) {
    char folder[PATH_MAX];
    if (!under()) return 0;
    if (path[0] == '/') {
        folder[0] = '\0';
    } else if (dir == AT_FDCWD ? getcwd(folder, sizeof folder) == NULL : !path_of(dir, folder)) {
        return 0;
    }
    int length = snprintf(whole, PATH_MAX, "%s%s%s", folder, path[0] == '/' ? "" : "/", path);
    return length < PATH_MAX && below(whole);
}

#define ON_PATH(name, arguments, call, dir, path, kind)                                                                \
    int name arguments {                                                                                               \
        REAL(int, name, arguments);                                                                                    \
        char whole[PATH_MAX];                                                                                          \
        if (!resolve(dir, path, whole)) return real call;                                                              \
        enum fate fate = operation(kind, #name, whole);                                                                \
        if (fate == FAILS) return -1;                                                                                  \
        if (fate == ENDS) end();                                                                                       \
        int done = real call;                                                                                          \
        if (fate == ENDS_AFTER) end();                                                                                 \
        return done;                                                                                                   \
    }

ON_PATH(rename, (const char *from, const char *to), (from, to), AT_FDCWD, to, TAKES_SPACE)
ON_PATH(renameat, (int from_dir, const char *from, int to_dir, const char *to), (from_dir, from, to_dir, to), to_dir, to,
        TAKES_SPACE)
ON_PATH(renameat2, (int from_dir, const char *from, int to_dir, const char *to, unsigned flags),
        (from_dir, from, to_dir, to, flags), to_dir, to, TAKES_SPACE)
ON_PATH(linkat, (int from_dir, const char *from, int to_dir, const char *to, int flags),
        (from_dir, from, to_dir, to, flags), to_dir, to, TAKES_SPACE)
ON_PATH(unlink, (const char *path), (path), AT_FDCWD, path, FREES_SPACE)
ON_PATH(unlinkat, (int dir, const char *path, int flags), (dir, path, flags), dir, path, FREES_SPACE)
ON_PATH(mkdir, (const char *path, mode_t mode), (path, mode), AT_FDCWD, path, TAKES_SPACE)
ON_PATH(mkdirat, (int dir, const char *path, mode_t mode), (dir, path, mode), dir, path, TAKES_SPACE)

/* Making a file is an operation, opening one that is there is none. */
static enum fate opening(int dir, const char *path, int flags) {
    char whole[PATH_MAX];
    if (!(flags & O_CREAT) || !resolve(dir, path, whole) || access(whole, F_OK) == 0) return GOES_ON;
    return operation(TAKES_SPACE, "open", whole);
}

#define ON_OPEN(name, parameters, passed, dir)                                                                         \
    int name parameters {                                                                                              \
        REAL(int, name, parameters);                                                                                   \
        va_list rest;                                                                                                  \
        va_start(rest, flags);                                                                                         \
        mode_t mode = (flags & O_CREAT) || (flags & O_TMPFILE) == O_TMPFILE ? va_arg(rest, mode_t) : 0;                                        \
        va_end(rest);                                                                                                  \
        enum fate fate = opening(dir, path, flags);                                                                    \
        if (fate == FAILS) return -1;                                                                                  \
        if (fate == ENDS) end();                                                                                       \
        int done = real passed;                                                                                        \
        if (fate == ENDS_AFTER) end();                                                                                 \
        return done;                                                                                                   \
    }

ON_OPEN(open, (const char *path, int flags, ...), (path, flags, mode), AT_FDCWD)
ON_OPEN(open64, (const char *path, int flags, ...), (path, flags, mode), AT_FDCWD)
ON_OPEN(openat, (int dir, const char *path, int flags, ...), (dir, path, flags, mode), dir)
ON_OPEN(openat64, (int dir, const char *path, int flags, ...), (dir, path, flags, mode), dir)
