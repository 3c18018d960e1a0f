/* Lets the n-th system call on the files of a folder fail, or end the process; preloaded by syscalls.py. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILES 4096

static char folder[PATH_MAX], kinds[16];
static char ours[FILES];
static char last[64];
static long calls, fatal;
static int code, lasting, ending;

/* The folder; which calls count, by letters: (p)ath, (o)pen, (r)ead, (w)rite, (s)ync, (i)nformation, (m)ap, (l)ock,
   (c)lose; the number of the call that fails, 0 for none; its errno; whether all that follow fail as well; and whether the
   process ends there instead. */
void syscalls_fail(const char *where, const char *which, long n, int error, int for_ever, int end) {
    snprintf(folder, sizeof folder, "%s", where);
    snprintf(kinds, sizeof kinds, "%s", which);
    calls = 0, fatal = n, code = error, lasting = for_ever, ending = end;
    last[0] = 0;
}

/* How many calls there were since then. */
long syscalls_made(void) { return calls; }

/* The name of the call that failed. */
const char *syscalls_failed(void) { return last; }

static int fails(const char *name, char kind) {
    if (!strchr(kinds, kind)) return 0;
    calls++;
    if (!fatal || calls < fatal || (calls > fatal && !lasting)) return 0;
    if (!last[0]) snprintf(last, sizeof last, "%s", name);
    if (ending) _exit(9);
    errno = code;
    return 1;
}

static int in_folder(const char *path) {
    return folder[0] && path && strncmp(path, folder, strlen(folder)) == 0;
}

static int is_ours(int file) { return file >= 0 && file < FILES && ours[file]; }

#define REAL(result, name, ...) \
    static result (*real)(__VA_ARGS__); \
    if (!real) real = (result (*)(__VA_ARGS__))dlsym(RTLD_NEXT, name)

#define OPEN(symbol) \
    int symbol(const char *path, int flags, ...) { \
        REAL(int, #symbol, const char *, int, ...); \
        va_list rest; \
        va_start(rest, flags); \
        mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(rest, mode_t) : 0; \
        va_end(rest); \
        int mine = in_folder(path); \
        if (mine && fails("open", flags & O_CREAT ? 'w' : 'o')) return -1; \
        int file = real(path, flags, mode); \
        if (file >= 0 && file < FILES) ours[file] = mine; \
        return file; \
    }
OPEN(open)
OPEN(open64)

int close(int file) {
    REAL(int, "close", int);
    int mine = is_ours(file);
    if (mine) ours[file] = 0;
    int done = real(file);
    return mine && fails("close", 'c') ? -1 : done; /* it is closed all the same, as by Linux */
}

#define ON_FILE(result, kind, name, parameters, arguments, ...) \
    result name parameters { \
        REAL(result, #name, __VA_ARGS__); \
        if (is_ours(file) && fails(#name, kind)) return -1; \
        return real arguments; \
    }
ON_FILE(ssize_t, 'r', read, (int file, void *to, size_t n), (file, to, n), int, void *, size_t)
ON_FILE(ssize_t, 'r', pread, (int file, void *to, size_t n, off_t at), (file, to, n, at), int, void *, size_t, off_t)
ON_FILE(ssize_t, 'r', pread64, (int file, void *to, size_t n, off64_t at), (file, to, n, at), int, void *, size_t, off64_t)
ON_FILE(int, 's', fsync, (int file), (file), int)
ON_FILE(int, 's', fdatasync, (int file), (file), int)
ON_FILE(int, 'w', ftruncate, (int file, off_t n), (file, n), int, off_t)
ON_FILE(int, 'w', ftruncate64, (int file, off64_t n), (file, n), int, off64_t)
ON_FILE(int, 'i', fchmod, (int file, mode_t mode), (file, mode), int, mode_t)
ON_FILE(int, 'i', fstat, (int file, struct stat *to), (file, to), int, struct stat *)
ON_FILE(int, 'i', fstat64, (int file, struct stat64 *to), (file, to), int, struct stat64 *)

/* A write that fails has written half of it, as on a disk that fills. */
#define WRITE(name, half, parameters, arguments, ...) \
    ssize_t name parameters { \
        REAL(ssize_t, #name, __VA_ARGS__); \
        if (is_ours(file) && fails(#name, 'w')) { \
            int error = errno; \
            if (error == ENOSPC) (void)!(real half); \
            errno = error; \
            return -1; \
        } \
        return real arguments; \
    }
WRITE(write, (file, from, n / 2), (int file, const void *from, size_t n), (file, from, n), int, const void *, size_t)
WRITE(pwrite, (file, from, n / 2, at), (int file, const void *from, size_t n, off_t at), (file, from, n, at), int,
      const void *, size_t, off_t)
WRITE(pwrite64, (file, from, n / 2, at), (int file, const void *from, size_t n, off64_t at), (file, from, n, at), int,
      const void *, size_t, off64_t)

/* A lock that is given back: that does not fail but on disks of other machines. */
static int gives_back(int command, void *argument) {
    int locks = command == F_SETLK || command == F_SETLKW || command == F_OFD_SETLK || command == F_OFD_SETLKW;
    return locks && ((struct flock *)argument)->l_type == F_UNLCK;
}

#define LOCK(name) \
    int name(int file, int command, ...) { \
        REAL(int, #name, int, int, ...); \
        va_list rest; \
        va_start(rest, command); \
        void *argument = va_arg(rest, void *); \
        va_end(rest); \
        if (is_ours(file) && !gives_back(command, argument) && fails("fcntl", 'l')) return -1; \
        return real(file, command, argument); \
    }
LOCK(fcntl)
LOCK(fcntl64)

#define MAP(name, offset) \
    void *name(void *at, size_t n, int protection, int flags, int file, offset from) { \
        REAL(void *, #name, void *, size_t, int, int, int, offset); \
        if (is_ours(file) && fails("mmap", 'm')) return MAP_FAILED; \
        return real(at, n, protection, flags, file, from); \
    }
MAP(mmap, off_t)
MAP(mmap64, off64_t)

#define ON_PATH(name, parameters, arguments, ...) \
    int name parameters { \
        REAL(int, #name, __VA_ARGS__); \
        if (in_folder(path) && fails(#name, 'p')) return -1; \
        return real arguments; \
    }
ON_PATH(unlink, (const char *path), (path), const char *)
ON_PATH(rename, (const char *path, const char *to), (path, to), const char *, const char *)
ON_PATH(access, (const char *path, int mode), (path, mode), const char *, int)
ON_PATH(stat, (const char *path, struct stat *to), (path, to), const char *, struct stat *)
ON_PATH(stat64, (const char *path, struct stat64 *to), (path, to), const char *, struct stat64 *)
ON_PATH(lstat, (const char *path, struct stat *to), (path, to), const char *, struct stat *)
ON_PATH(lstat64, (const char *path, struct stat64 *to), (path, to), const char *, struct stat64 *)
