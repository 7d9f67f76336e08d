/*
 * For the supervisor: bytes that outlive the daemon, in one small file that is always whole: either as it was or as it was
 * written last. What the bytes mean is the caller's.
 *
 *     "perfd events 1 LENGTH\n" | LENGTH bytes
 *
 * It is a regular file that begins with these words, or is cut in them, in a folder that belongs to perfd's uid or to root, and
 * to which nobody else may write; nothing else is read, written or renamed: REFUSED_DENIED "state-file".
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "daemon/base/error.h"

enum {
        STATE_FILE_E_MISSING = _REFUSED_MAX, /* there is none */
};

/*
 * In the place of what was there: written beside it, synced, renamed. Its folder is made if only that is missing. Refused
 * "state-file": with what the system said; the old one is as it was. Negative: memory.
 */
int state_file_write(const char *path, const uint8_t *bytes, size_t n, Explanation *e);
/*
 * malloc. REFUSED_INVALID "state-file": it is not, or not all, of what state_file_write() writes; REFUSED_DENIED: it cannot
 * be read; STATE_FILE_E_MISSING. Negative: memory.
 */
int state_file_read(const char *path, uint8_t **ret_bytes, size_t *ret_n, Explanation *e);
/*
 * For who only checks a configuration, and need not be who uses it: REFUSED_DENIED if what is there, as far as it can be seen, is
 * none, or if others may write to its folder. Negative: memory.
 */
int state_file_check_place(const char *path, Explanation *e);
/* Its contents begin at *ret_begin. REFUSED_INVALID as above. Pure. */
int state_file_check(const char *path, const uint8_t *file, size_t length, size_t *ret_begin, Explanation *e);
/* Gives the file another name, in malloc'ed memory, that nothing has yet. REFUSED_DENIED. Negative: memory. */
int state_file_set_aside(const char *path, char **ret_name, Explanation *e);
