/*
 * Makes every flush slower, as on a disk that takes its time: loaded with LD_PRELOAD. Nothing else is touched, since a
 * look at each write would cost more than the writes.
 *
 *   SLOW_FLUSH  microseconds added to every fsync and fdatasync
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <time.h>

static void wait_a_moment(void) {
    const char *micros = getenv("SLOW_FLUSH");
    long value = micros ? atol(micros) : 0;
    struct timespec moment = {value / 1000000, (value % 1000000) * 1000};
    nanosleep(&moment, NULL);
}

#define SLOW(name)                                                                                                     \
    int name(int fd) {                                                                                                 \
        static int (*real)(int);                                                                                       \
        if (!real) real = (int (*)(int))dlsym(RTLD_NEXT, #name);                                                       \
        wait_a_moment();                                                                                               \
        return real(fd);                                                                                               \
    }

SLOW(fsync)
SLOW(fdatasync)
