/*
 * Writes down what a process does to the files below a folder, and what it sends over sockets, in one order: loaded with
 * LD_PRELOAD into a program that is not changed for it. From that it can be told what a loss of power would have left.
 *
 *   RECORD_UNDER    only files below this folder count (required, without links in it)
 *   RECORD_LOG      the file that is written on; several processes one after the other may use one (required)
 *   RECORD_KILL_AT  the number of the record, from 1, right after which the process gets SIGKILL…
 *   RECORD_KILL_OF  …counting only records of this kind, if it is given
 *
 * One operation runs at a time, so the order of the records is that of the operations. What is sent is written down
 * before it leaves. A record is, in the machine's byte order: kind (1 byte), inode (8), place (8), lengths of two texts
 * (4 each), the texts. Kinds and their texts:
 *
 *   C path           a file was created          W - data   written at place    T  cut or grown to place
 *   S  file synced   D path  folder synced       R from to  renamed             L from to  linked
 *   U path  removed  M path  folder made         N - data   sent                F  file synced without its times
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <linux/openat2.h>
#include <unistd.h>

/* Of what is sent at once, no more than this is kept. */
#define SENT_LIMIT (64 * 1024)

static pthread_mutex_t one_at_a_time = PTHREAD_MUTEX_INITIALIZER;
static char root[PATH_MAX];
static size_t root_length;
static int log_fd = -1;
static long kill_at, records;
static char kill_of;

#define REAL(result, name, arguments) static result(*real_##name) arguments;
REAL(int, open, (const char *, int, ...))
REAL(int, openat, (int, const char *, int, ...))
REAL(ssize_t, write, (int, const void *, size_t))
REAL(ssize_t, pwrite64, (int, const void *, size_t, off64_t))
REAL(ssize_t, writev, (int, const struct iovec *, int))
REAL(int, ftruncate64, (int, off64_t))
REAL(int, fsync, (int))
REAL(int, fdatasync, (int))
REAL(int, renameat2, (int, const char *, int, const char *, unsigned))
REAL(int, linkat, (int, const char *, int, const char *, int))
REAL(int, unlinkat, (int, const char *, int))
REAL(int, mkdirat, (int, const char *, mode_t))
REAL(ssize_t, send, (int, const void *, size_t, int))
REAL(ssize_t, sendto, (int, const void *, size_t, int, const struct sockaddr *, socklen_t))
REAL(ssize_t, sendmsg, (int, const struct msghdr *, int))
REAL(long, syscall, (long, ...))

__attribute__((constructor)) static void begin(void) {
#define FIND(name) real_##name = dlsym(RTLD_NEXT, #name)
    FIND(open), FIND(openat), FIND(write), FIND(pwrite64), FIND(writev), FIND(ftruncate64), FIND(fsync);
    FIND(fdatasync), FIND(renameat2), FIND(linkat), FIND(unlinkat), FIND(mkdirat), FIND(send), FIND(sendto);
    FIND(sendmsg), FIND(syscall);
    const char *under = getenv("RECORD_UNDER"), *log = getenv("RECORD_LOG"), *at = getenv("RECORD_KILL_AT");
    if (!under || !log) return;
    root_length = strlen(under);
    if (root_length >= sizeof root) return;
    memcpy(root, under, root_length + 1);
    kill_at = at ? atol(at) : 0;
    const char *of = getenv("RECORD_KILL_OF");
    kill_of = of ? of[0] : '\0';
    log_fd = real_open(log, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
}

static void lock(void) { pthread_mutex_lock(&one_at_a_time); }

/* Keeps the errno of the operation. */
static void unlock(void) { pthread_mutex_unlock(&one_at_a_time); }

/* Called with the lock held. A record that cannot be written would make everything that follows wrong. */
static void note(char kind, uint64_t inode, uint64_t place, const void *one, size_t one_size, const void *two,
                 size_t two_size) {
    int error = errno;
    uint32_t sizes[2] = {(uint32_t)one_size, (uint32_t)two_size};
    size_t size = 25 + one_size + two_size;
    char *record = malloc(size);
    if (!record) abort();
    record[0] = kind;
    memcpy(record + 1, &inode, 8);
    memcpy(record + 9, &place, 8);
    memcpy(record + 17, sizes, 8);
    if (one_size) memcpy(record + 25, one, one_size);
    if (two_size) memcpy(record + 25 + one_size, two, two_size);
    if (real_write(log_fd, record, size) != (ssize_t)size) abort();
    free(record);
    if (kill_of == '\0' || kill_of == kind) records++;
    if (kill_at && records == kill_at) {
        kill(getpid(), SIGKILL);
        for (;;) pause();
    }
    errno = error;
}

static int ends_with(const char *text, const char *end) {
    size_t length = strlen(text), wanted = strlen(end);
    return length >= wanted && strcmp(text + length - wanted, end) == 0;
}

/* Shared memory of the database's index is made anew after every start, so it is none of what lasts. */
static int counts(const char *path) {
    return strncmp(path, root, root_length) == 0 && (path[root_length] == '/' || path[root_length] == '\0') &&
           !ends_with(path, "-shm");
}

static int path_of(int fd, char *path) {
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, PATH_MAX - 1);
    if (length < 0) return 0;
    path[length] = '\0';
    return 1;
}

/* The absolute path of a name below a folder; whether it counts. */
static int full(int dir, const char *name, char *path) {
    int error = errno, found;
    if (log_fd < 0) return 0;
    if (name[0] == '/') {
        found = snprintf(path, PATH_MAX, "%s", name) < PATH_MAX;
    } else {
        char folder[PATH_MAX];
        found = dir == AT_FDCWD ? getcwd(folder, sizeof folder) != NULL : path_of(dir, folder);
        while (name[0] == '.' && name[1] == '/') name += 2;
        found = found && snprintf(path, PATH_MAX, "%s/%s", folder, name) < PATH_MAX;
    }
    errno = error;
    return found && counts(path);
}

enum what { NOTHING, A_FILE, A_FOLDER, A_SOCKET };

static enum what look(int fd, struct stat *stat, char *path) {
    int error = errno;
    enum what what = NOTHING;
    if (log_fd < 0 || fd == log_fd || fstat(fd, stat) != 0) what = NOTHING;
    else if (S_ISSOCK(stat->st_mode)) what = A_SOCKET;
    else if (S_ISREG(stat->st_mode) && path_of(fd, path) && counts(path)) what = A_FILE;
    else if (S_ISDIR(stat->st_mode) && path_of(fd, path) && counts(path)) what = A_FOLDER;
    errno = error;
    return what;
}

static void sent(const struct iovec *parts, size_t count) {
    static char data[SENT_LIMIT];
    size_t size = 0;
    lock();
    for (size_t part = 0; part < count; part++) {
        size_t rest = SENT_LIMIT - size, more = parts[part].iov_len < rest ? parts[part].iov_len : rest;
        memcpy(data + size, parts[part].iov_base, more);
        size += more;
    }
    note('N', 0, 0, NULL, 0, data, size);
    unlock();
}

static int opened(int dir, const char *name, int flags, int fd, int was_there) {
    char path[PATH_MAX];
    struct stat stat;
    if (fd >= 0 && full(dir, name, path) && fstat(fd, &stat) == 0 && S_ISREG(stat.st_mode)) {
        if ((flags & O_CREAT) && !was_there) note('C', stat.st_ino, 0, path, strlen(path), NULL, 0);
        else if (flags & O_TRUNC) note('T', stat.st_ino, 0, NULL, 0, NULL, 0);
    }
    return fd;
}

static int is_there(int dir, const char *name) {
    int error = errno;
    struct stat stat;
    int found = fstatat(dir, name, &stat, AT_SYMLINK_NOFOLLOW) == 0;
    errno = error;
    return found;
}

#define MODE(flags, last)                                                                                              \
    mode_t mode = 0;                                                                                                   \
    if ((flags) & (O_CREAT | O_TMPFILE)) {                                                                             \
        va_list rest;                                                                                                  \
        va_start(rest, last);                                                                                          \
        mode = va_arg(rest, mode_t);                                                                                   \
        va_end(rest);                                                                                                  \
    }

static int open_at(int dir, const char *name, int flags, mode_t mode) {
    if (log_fd < 0 || !(flags & (O_CREAT | O_TRUNC))) return real_openat(dir, name, flags, mode);
    lock();
    int was_there = is_there(dir, name);
    int fd = opened(dir, name, flags, real_openat(dir, name, flags, mode), was_there);
    unlock();
    return fd;
}

int open(const char *name, int flags, ...) {
    MODE(flags, flags)
    return open_at(AT_FDCWD, name, flags, mode);
}

int open64(const char *name, int flags, ...) {
    MODE(flags, flags)
    return open_at(AT_FDCWD, name, flags | O_LARGEFILE, mode);
}

int openat(int dir, const char *name, int flags, ...) {
    MODE(flags, flags)
    return open_at(dir, name, flags, mode);
}

int openat64(int dir, const char *name, int flags, ...) {
    MODE(flags, flags)
    return open_at(dir, name, flags | O_LARGEFILE, mode);
}

/* `openat2` has no function of its own. */
long syscall(long number, ...) {
    long a[6];
    va_list rest;
    va_start(rest, number);
    for (int i = 0; i < 6; i++) a[i] = va_arg(rest, long);
    va_end(rest);
    if (log_fd < 0 || number != SYS_openat2) return real_syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
    const struct open_how *how = (const struct open_how *)a[2];
    lock();
    int was_there = is_there((int)a[0], (const char *)a[1]);
    long fd = real_syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
    opened((int)a[0], (const char *)a[1], (int)how->flags, (int)fd, was_there);
    unlock();
    return fd;
}

static void wrote(const struct stat *stat, off64_t at, const void *data, ssize_t size) {
    if (size > 0) note('W', stat->st_ino, (uint64_t)at, NULL, 0, data, (size_t)size);
}

static off64_t place(int fd) {
    int flags = fcntl(fd, F_GETFL);
    struct stat stat;
    if (flags >= 0 && (flags & O_APPEND) && fstat(fd, &stat) == 0) return stat.st_size;
    return lseek64(fd, 0, SEEK_CUR);
}

ssize_t write(int fd, const void *data, size_t size) {
    struct stat stat;
    char path[PATH_MAX];
    enum what what = look(fd, &stat, path);
    if (what == A_SOCKET) sent(&(struct iovec){(void *)data, size}, 1);
    if (what != A_FILE) return real_write(fd, data, size);
    lock();
    off64_t at = place(fd);
    ssize_t result = real_write(fd, data, size);
    wrote(&stat, at, data, result);
    unlock();
    return result;
}

ssize_t writev(int fd, const struct iovec *parts, int count) {
    struct stat stat;
    char path[PATH_MAX];
    enum what what = look(fd, &stat, path);
    if (what == A_SOCKET) sent(parts, (size_t)count);
    if (what != A_FILE) return real_writev(fd, parts, count);
    /* One after the other: what a part leaves is written by the caller. */
    for (int part = 0; part < count; part++)
        if (parts[part].iov_len) return write(fd, parts[part].iov_base, parts[part].iov_len);
    return 0;
}

ssize_t pwrite64(int fd, const void *data, size_t size, off64_t at) {
    struct stat stat;
    char path[PATH_MAX];
    if (look(fd, &stat, path) != A_FILE) return real_pwrite64(fd, data, size, at);
    lock();
    ssize_t result = real_pwrite64(fd, data, size, at);
    wrote(&stat, at, data, result);
    unlock();
    return result;
}

ssize_t pwrite(int fd, const void *data, size_t size, off_t at) { return pwrite64(fd, data, size, at); }

int ftruncate64(int fd, off64_t size) {
    struct stat stat;
    char path[PATH_MAX];
    if (look(fd, &stat, path) != A_FILE) return real_ftruncate64(fd, size);
    lock();
    int result = real_ftruncate64(fd, size);
    if (result == 0) note('T', stat.st_ino, (uint64_t)size, NULL, 0, NULL, 0);
    unlock();
    return result;
}

int ftruncate(int fd, off_t size) { return ftruncate64(fd, size); }

static int sync_fd(int fd, int (*real)(int), char kind) {
    struct stat stat;
    char path[PATH_MAX];
    enum what what = look(fd, &stat, path);
    if (what != A_FILE && what != A_FOLDER) return real(fd);
    lock();
    int result = real(fd);
    if (result == 0 && what == A_FILE) note(kind, stat.st_ino, 0, NULL, 0, NULL, 0);
    if (result == 0 && what == A_FOLDER) note('D', 0, 0, path, strlen(path), NULL, 0);
    unlock();
    return result;
}

int fsync(int fd) { return sync_fd(fd, real_fsync, 'S'); }
int fdatasync(int fd) { return sync_fd(fd, real_fdatasync, 'F'); }

int renameat2(int from_dir, const char *from, int to_dir, const char *to, unsigned flags) {
    char old[PATH_MAX], new[PATH_MAX];
    int old_counts = full(from_dir, from, old);
    if (!(full(to_dir, to, new) | old_counts)) return real_renameat2(from_dir, from, to_dir, to, flags);
    lock();
    int result = real_renameat2(from_dir, from, to_dir, to, flags);
    if (result == 0) note('R', 0, 0, old, strlen(old), new, strlen(new));
    unlock();
    return result;
}

int renameat(int from_dir, const char *from, int to_dir, const char *to) {
    return renameat2(from_dir, from, to_dir, to, 0);
}

int rename(const char *from, const char *to) { return renameat2(AT_FDCWD, from, AT_FDCWD, to, 0); }

int linkat(int from_dir, const char *from, int to_dir, const char *to, int flags) {
    char old[PATH_MAX], new[PATH_MAX];
    if (!full(to_dir, to, new) || !full(from_dir, from, old)) return real_linkat(from_dir, from, to_dir, to, flags);
    lock();
    int result = real_linkat(from_dir, from, to_dir, to, flags);
    if (result == 0) note('L', 0, 0, old, strlen(old), new, strlen(new));
    unlock();
    return result;
}

int link(const char *from, const char *to) { return linkat(AT_FDCWD, from, AT_FDCWD, to, 0); }

int unlinkat(int dir, const char *name, int flags) {
    char path[PATH_MAX];
    if (!full(dir, name, path)) return real_unlinkat(dir, name, flags);
    lock();
    int result = real_unlinkat(dir, name, flags);
    if (result == 0) note('U', 0, 0, path, strlen(path), NULL, 0);
    unlock();
    return result;
}

int unlink(const char *name) { return unlinkat(AT_FDCWD, name, 0); }
int rmdir(const char *name) { return unlinkat(AT_FDCWD, name, AT_REMOVEDIR); }

int mkdirat(int dir, const char *name, mode_t mode) {
    char path[PATH_MAX];
    if (!full(dir, name, path)) return real_mkdirat(dir, name, mode);
    lock();
    int result = real_mkdirat(dir, name, mode);
    if (result == 0) note('M', 0, 0, path, strlen(path), NULL, 0);
    unlock();
    return result;
}

int mkdir(const char *name, mode_t mode) { return mkdirat(AT_FDCWD, name, mode); }

static int is_socket(int fd) {
    struct stat stat;
    char path[PATH_MAX];
    return look(fd, &stat, path) == A_SOCKET;
}

ssize_t send(int fd, const void *data, size_t size, int flags) {
    if (is_socket(fd)) sent(&(struct iovec){(void *)data, size}, 1);
    return real_send(fd, data, size, flags);
}

ssize_t sendto(int fd, const void *data, size_t size, int flags, const struct sockaddr *to, socklen_t to_size) {
    if (is_socket(fd)) sent(&(struct iovec){(void *)data, size}, 1);
    return real_sendto(fd, data, size, flags, to, to_size);
}

ssize_t sendmsg(int fd, const struct msghdr *message, int flags) {
    if (is_socket(fd)) sent(message->msg_iov, message->msg_iovlen);
    return real_sendmsg(fd, message, flags);
}
