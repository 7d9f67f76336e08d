/*
 * Writing recordings that perf(1) reads, perf.data, as files and to pipes. No daemon is needed. A writer is used by one thread at a time.
 *
 * A file gets a temporary name beside its own, FILE.part-XXXXXX, until perfd_recording_writer_close() gives it its own; what had that is
 * then FILE.old. A file whose writer was killed keeps the temporary name, and perfd_recording_open() reads it to its last whole record.
 */
#pragma once

#include "declarations.h"
#include "recorded-sample.h"
#include "recording.h"

PERFD_BEGIN_DECLARATIONS

typedef struct perfd_recording_writer perfd_recording_writer;

#define PERFD_RECORDING_LATE_EVENTS 256 /* may be added behind the first record of a file */

/* NULL: no memory. */
perfd_recording_writer *perfd_recording_writer_new(void);
/* Takes NULL. A file that was not closed is removed, unless writing to it failed: then what is whole of it stays. */
void perfd_recording_writer_free(perfd_recording_writer *w);
/* What failed last, for people: "" if nothing did. */
const char *perfd_recording_writer_error(const perfd_recording_writer *w);

/*
 * Begins a file of that path, or a pipe on an fd, which stays the caller's; once. level: 1 to 19 compresses records by zstd, 0 does not. 0;
 * PERFD_E_INVALID: what has that path is no regular file, or the level is none; PERFD_E_STATE; -errno of open(2).
 */
int perfd_recording_writer_open(perfd_recording_writer *w, const char *path, int level);
int perfd_recording_writer_open_pipe(perfd_recording_writer *w, int fd, int level);

/*
 * An event, with its name and ids, of which it has at least one; attr_size is of no account. Behind the first record of a file an event has
 * one id, and there are at most PERFD_RECORDING_LATE_EVENTS. All events of a recording have the same PERF_SAMPLE_IDENTIFIER bit and
 * PERFD_ATTR_SAMPLE_ID_ALL flag. 0; PERFD_E_INVALID, _STATE; -ENOMEM, -errno of write(2).
 */
int perfd_recording_writer_add_event(perfd_recording_writer *w, const perfd_recorded_event *event);
/*
 * A section of the header, by its bit, as bytes in the form of perf's own; before the first record. EVENT_DESC, SAMPLE_TIME and
 * COMPRESSED are the writer's. TRACING_DATA may come again behind it, with formats of events that were added late: it takes the place of the
 * one before, in a file when it is closed. 0; PERFD_E_INVALID: it is one of these, or was added; PERFD_E_STATE; -ENOMEM, -errno of write(2).
 */
int perfd_recording_writer_add_feature(perfd_recording_writer *w, unsigned bit, const void *bytes, size_t n);
/*
 * The sections that describe this host: HOSTNAME, OSRELEASE, ARCH, NRCPUS, CPUDESC, CPUID, TOTAL_MEM, CPU_TOPOLOGY, NUMA_TOPOLOGY,
 * PMU_MAPPINGS, BUILD_ID of the kernel, and VERSION and CMDLINE. What this host does not say is left out. As the function before.
 */
int perfd_recording_writer_add_host(perfd_recording_writer *w, const char *const *command_line, size_t n);
/*
 * A row of the section BUILD_ID, of a pipe a record of its own: the build id, of 1 to 20 bytes, of a file that was mapped by that path. misc:
 * PERF_RECORD_MISC_USER or _KERNEL. At any time before the end: rows that come behind the first record of a file are not in one whose writer
 * was killed. 0; PERFD_E_INVALID: another length, or a path of more than 4,095 bytes; PERFD_E_STATE; -ENOMEM, -errno of write(2).
 */
int perfd_recording_writer_add_build_id(perfd_recording_writer *w, uint16_t misc, perfd_text build_id, perfd_text path);
/*
 * TRACING_DATA: the formats of these tracepoints, "sched:sched_switch", with what perf needs to show their fields, read below the mount
 * point of tracefs. 0; PERFD_E_INVALID, _STATE; -ENOMEM, -errno of open(2) and read(2).
 */
int perfd_recording_writer_add_tracing(perfd_recording_writer *w, const char *tracefs, const char *const *tracepoints, size_t n);

/*
 * A record of the kernel's or of perf's types: the bytes behind its header, with what sample_id_all appends. The first one ends what may
 * be added before. 0; PERFD_E_INVALID: of more than 65,527 bytes, or not of whole 8 bytes, or no event was added; PERFD_E_STATE; -ENOMEM,
 * -errno of write(2): the last whole batch stays, and the error says how much this is.
 */
int perfd_recording_writer_put(perfd_recording_writer *w, uint32_t type, uint16_t misc, const void *bytes, size_t n);
/*
 * A sample, by the attr of sample->id.event, of which ids and sample_type count. misc: PERF_RECORD_MISC_*. READ, BRANCH_STACK, AUX and
 * REGS_INTR are not written, and of REGS_USER there are as many as the event's sample_regs_user has: PERFD_E_INVALID. The rest as before.
 */
int perfd_recording_writer_put_sample(perfd_recording_writer *w, uint16_t misc, const perfd_recorded_sample *sample);
/* What was put becomes a whole batch in the file. 0; -errno */
int perfd_recording_writer_flush(perfd_recording_writer *w);
/*
 * Samples that were given to it and are not in the file, because a write(2) failed: those of the batch that had no room, and all behind it. With
 * perfd_recording_writer_close() a LOST_SAMPLES in the file says so, if there is room for it.
 */
uint64_t perfd_recording_writer_n_unwritten(const perfd_recording_writer *w);
/* Bytes written so far. */
uint64_t perfd_recording_writer_size(const perfd_recording_writer *w);
/* Ends it, and gives a file its name. 0; PERFD_E_STATE; -errno, also if an earlier write(2) failed. */
int perfd_recording_writer_close(perfd_recording_writer *w);

PERFD_END_DECLARATIONS
