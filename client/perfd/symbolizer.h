/*
 * Names of addresses: which function of which file was at an address of a process at a time, from ELF files, the kernel's list of
 * symbols, and the lists that JIT compilers write. No daemon is needed. It is told what was mapped, by records of a stream or of a
 * recording in any order; files are read when an address in them is asked for first. A perfd_symbolizer is used by one thread at a time.
 *
 * Whatever is not certain has no name: a file whose build id or inode is not that of the mapping is not used.
 */
#pragma once

#include "declarations.h"
#include "field.h"
#include "recording.h"
#include "sample.h"

PERFD_BEGIN_DECLARATIONS

typedef struct perfd_symbolizer perfd_symbolizer;

/* A file that comes from a server. */
typedef struct perfd_download {
        size_t size;
        perfd_text build_id;
        uint64_t n, length;        /* bytes that are here, of so many; length 0: not known yet */
} perfd_download;

/* Strings are copied. */
typedef struct perfd_symbolizer_options {
        size_t size;
        const char *build_ids;     /* directories with xx/yyyy.debug and xx/yyyy/elf of build id xxyyyy, ':' between them; NULL: those of
                                      perf, ~/.debug/.build-id, and of the distribution, /usr/lib/debug/.build-id */
        const char *root;          /* paths of mappings are below it, as are their symbolic links; NULL: / */
        const char *kallsyms;      /* NULL: /proc/kallsyms, unless is_remote; "": none */
        size_t memory_max;         /* bytes, for tables and mappings together; 0: 256 MiB */
        bool is_remote;            /* of another host, or before its last boot: nothing in /proc is of what is asked for */
        bool is_monotonic;         /* times are of CLOCK_MONOTONIC, which JIT compilers write into their dumps */
        bool has_lines;            /* frames have source lines, and inlined functions are known: debug information is read along with symbols */
        bool has_parameters;       /* names of C++ have the types of theirs, as addr2line -C shows them; else not, as perf does not */
        /*
         * Debug files and programs that are not here are asked for, by build id, at the servers whose URLs DEBUGINFOD_URLS in the environment
         * lists, by libdebuginfod, which keeps them in its cache (debuginfod(7)). A server from which nothing comes for two seconds, or
         * something else than the file, is not asked again by this perfd_symbolizer. Without it nothing is asked of anybody.
         */
        bool has_debuginfod;
        void *userdata;
        /* Some times a second while a file is waited for, and with NULL behind it. false: no file is waited for any more. NULL: nobody asks. */
        bool (*wait)(void *userdata, const perfd_download *download);
        /* Once: why servers are not asked, or not any more. NULL: nobody asks. */
        void (*note)(void *userdata, const char *text);
        /* A folder, made if only that is missing: functions of the running kernel are kept there until the next boot, in a file that this user
           alone can read: the kernel makes /proc/kallsyms anew for each reader. NULL: none */
        const char *symbol_cache;
} perfd_symbolizer_options;

#define PERFD_SYMBOLIZER_OPTIONS_INIT { .size = sizeof(perfd_symbolizer_options) }

/* Memory of a process, from that time on. */
typedef struct perfd_mapping {
        size_t size;
        uint32_t pid;              /* with is_kernel ignored */
        bool is_kernel;            /* of the kernel or a module of it */
        uint64_t time;             /* ns; 0: from the beginning */
        uint64_t start, length;    /* bytes */
        uint64_t offset;           /* bytes from the beginning of the file: pgoff */
        perfd_text path;
        perfd_text build_id;       /* length 0: not known */
        uint32_t maj, min;         /* of the file's device; ino 0: not known */
        uint64_t ino, ino_generation;
} perfd_mapping;

#define PERFD_MAPPING_INIT { .size = sizeof(perfd_mapping) }

/* What is at an address. Texts are valid until the next call with the perfd_symbolizer. */
typedef struct perfd_frame {
        uint64_t ip;
        perfd_text symbol;         /* demangled; length 0: not known, which `note` explains */
        uint64_t offset;           /* bytes from the beginning of the symbol */
        perfd_text dso;            /* path as it was mapped, "[kernel.kallsyms]", "[ext4]" of a module, "[vdso]"; length 0: nothing is known to be mapped */
        perfd_text build_id;       /* of the file; length 0: not known */
        uint64_t address;          /* bytes from the beginning of the file; of the kernel and of JIT code: ip; of a module of the kernel
                                      whose mapping was recorded: from where it was loaded to */
        const char *note;          /* why there is no symbol; "" if there is one */
        perfd_text file;           /* of the source, as its compiler had it; length 0: not known, or not asked for (has_lines) */
        uint32_t line;             /* 0: not known, or code that the compiler made of no line */
        const char *line_note;     /* why there is no file; "" if there is one, or it was not asked for */
} perfd_frame;

typedef struct perfd_symbolizer_counts {
        size_t processes, mappings, tables; /* that are in memory */
        size_t bytes;              /* of tables and mappings */
        uint64_t loads;            /* tables that were read, those that were read again too */
        uint64_t evicted;          /* tables that gave way to others: they are read again when they are asked for */
        uint64_t forgotten;        /* mappings that had no place, or gave way: what was there has no name */
} perfd_symbolizer_counts;

/* options: NULL for the defaults. NULL: no memory. */
perfd_symbolizer *perfd_symbolizer_new(const perfd_symbolizer_options *options);
/* Takes NULL. */
void perfd_symbolizer_free(perfd_symbolizer *s);

/*
 * What happened to the memory of processes; times are ns of one clock, and may come in any order. All: 0; -ENOMEM; PERFD_E_INVALID: it
 * ends behind the last address, or a build id is longer than 32 bytes.
 */
int perfd_symbolizer_map(perfd_symbolizer *s, const perfd_mapping *mapping);
/* A COMM record with its exec bit: the process has nothing any more that was mapped before. */
int perfd_symbolizer_exec(perfd_symbolizer *s, uint32_t pid, uint64_t time);
/* The new process has what its parent had. Threads (pid is ppid) have no memory of their own: nothing happens. */
int perfd_symbolizer_fork(perfd_symbolizer *s, uint32_t pid, uint32_t ppid, uint64_t time);
/* Its memory stays known for samples that come later, but is the first to be forgotten. */
int perfd_symbolizer_exit(perfd_symbolizer *s, uint32_t pid);
/* A KSYMBOL record: code that the kernel got, or lost (is_unregister), such as a BPF program. */
int perfd_symbolizer_ksymbol(perfd_symbolizer *s, uint64_t time, uint64_t addr, uint64_t length, perfd_text name, bool is_unregister);
/* Mappings of that path that come without a build id have this one, as recordings of perf list them. "[kernel.kallsyms]": the kernel. */
int perfd_symbolizer_set_build_id(perfd_symbolizer *s, perfd_text path, perfd_text build_id);
/*
 * Any record of a recording, which perfd_recording_next() gave last: MMAP, MMAP2, COMM, FORK, EXIT, KSYMBOL and BUILD_ID are taken, others
 * are no matter. 0; -ENOMEM.
 */
int perfd_symbolizer_feed(perfd_symbolizer *s, perfd_recording *r, const perfd_recorded *record);

#define PERFD_BUILD_ID_MAX 20 /* bytes, as recordings have room for */

/* The build id in the notes of an ELF file, which is read from an fd at any position of it: its length in bytes. 0: there is none. */
size_t perfd_build_id_read(int fd, uint8_t ret[PERFD_BUILD_ID_MAX]);

/* What was at that address at that time (ns). is_kernel: a frame of the kernel; pid is no matter then. 0; -ENOMEM. */
int perfd_symbolizer_find(perfd_symbolizer *s, uint32_t pid, uint64_t time, uint64_t ip, bool is_kernel, perfd_frame *ret);

/*
 * The functions that were inlined at that address, from the innermost to the function itself, which is what perfd_symbolizer_find() gives:
 * each with the line where it calls the one before it, the first with that of the address. Without has_lines, and where nothing was
 * inlined, there is that one alone. offset is 0 but for the last. Of a return address the call is a byte before it: ask for ip - 1. The
 * frames are valid until the next call with the perfd_symbolizer. 0; -ENOMEM.
 */
int perfd_symbolizer_find_inlined(perfd_symbolizer *s, uint32_t pid, uint64_t time, uint64_t ip, bool is_kernel, const perfd_frame **ret_frames,
                                  size_t *ret_n);

/* A frame of a stack that was unwound. */
typedef struct perfd_caller {
        uint64_t ip;
        bool returns; /* it is where a call returns to: what called is at ip - 1; else it is what ran, or was interrupted by a signal */
} perfd_caller;

/*
 * Where a thread was and who had called, of the user's registers and a copy of its stack, PERF_SAMPLE_REGS_USER and PERF_SAMPLE_STACK_USER:
 * innermost first, 127 at most, valid until the next stack is unwound. By the call frame
 * information of the files that were mapped; in code that has none by the frame pointer. It ends where that says so, where the copy of the
 * stack ends, and where something is not known. None (*ret_n 0) of other machines than x86-64 and arm64, and of programs of 32 bits. stack:
 * from the stack pointer upwards; empty: no more than the first one is known. 0; -ENOMEM.
 */
int perfd_symbolizer_unwind(perfd_symbolizer *s, uint32_t pid, uint64_t time, const perfd_registers *registers, perfd_text stack,
                            const perfd_caller **ret_callers, size_t *ret_n);

void perfd_symbolizer_get_counts(const perfd_symbolizer *s, perfd_symbolizer_counts *ret);

PERFD_END_DECLARATIONS
