/*
 * perf.data: the file format of perf record, as files and as pipes. Numbers are in the byte order of the machine that wrote it, which the
 * magic tells. Source: perf.data-file-format.txt of perf, and its util/header.h.
 *
 *      file:  header | attrs | ids ... data (records) | sections, and their contents      (where each is, the header says)
 *      pipe:  magic, 16 | records, of which some say what the header of a file says
 */
#pragma once

#include <stdint.h>

#define PERF_DATA_MAGIC 0x32454c4946524550     /* "PERFILE2", as a little-endian number */
#define PERF_DATA_MAGIC_OLD 0x454c494646524550 /* "PERFFILE": of perf before Linux 3.1, in either byte order */

#define PERF_DATA_HEADER_SIZE 104    /* bytes of a file's header */
#define PERF_DATA_HEADER_OLD_SIZE 72 /* the same without the bits of features */
#define PERF_DATA_PIPE_SIZE 16       /* bytes of a pipe's header */
#define PERF_DATA_FEATURES 256       /* bits in it */
#define PERF_DATA_RECORD_HEADER 8    /* bytes: u32 type, u16 misc, u16 size, which counts these too */
#define PERF_DATA_SECTION 16         /* bytes: u64 offset, u64 size */

/*
 * Ours: what a file has just before its records, until it is closed, so that a reader finds the sections of one whose writer was killed.
 * PERF_DATA_SECTION for each bit that is set, the bits, the magic. Nobody else looks there.
 */
#define PERF_DATA_UNCLOSED_MAGIC 0x444553304c434e55 /* "UNCL0SED", as a little-endian number */
#define PERF_DATA_UNCLOSED_SIZE (PERF_DATA_FEATURES / 8 + 8) /* bytes of the bits and the magic */
#define PERF_DATA_BUILD_ID 20        /* bytes at most */
#define PERF_DATA_EVENT_TYPE 72      /* bytes: u64 id of a tracepoint, its name */
#define PERF_DATA_BUILD_ID_HAS_SIZE (1U << 15) /* in misc of a record of a build id: the byte behind it says its length */

/* Of records; all others are the kernel's. */
enum {
#define PERF_RECORD(number, name) PERF_DATA_##name = (number),
#include "proto/recording-format.def"
};

/* Of the header's bits. */
enum {
#define PERF_FEATURE(bit, name) PERF_DATA_FEATURE_##name = (bit),
#include "proto/recording-format.def"
};
