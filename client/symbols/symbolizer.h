/*
 * For this folder alone: what is known of processes and files. A Process has Mappings of Dsos; a Dso is a file as it was mapped, and its
 * table of symbols is loaded when an address in it is asked for, and gives way to others when memory is short.
 */
#pragma once

#include <string.h>
#include <sys/types.h>

#include "client/perfd/error.h"
#include "client/perfd/symbolizer.h"
#include "client/symbols/address-map.h"
#include "client/symbols/elf-symbols.h"
#include "client/symbols/kernel-cache.h"
#include "client/symbols/line-index.h"
#include "client/symbols/unwind.h"

#define HASH_SIZE 4096 /* a power of two */
#define CACHE_SIZE 2048
#define MAPPINGS_MAX 65536 /* of a process, and as many of JIT code */
#define PATH_LENGTH_MAX 4095
#define NOWHERE UINT32_MAX /* a pid that none has: the kernel's */

typedef enum DsoKind {
        DSO_FILE,
        DSO_ANONYMOUS, /* no file: of it the lists of JIT compilers may know something */
        DSO_VDSO,
        DSO_KERNEL,
        DSO_CODE,      /* what a KSYMBOL record or a JIT compiler has named */
} DsoKind;

typedef struct Dso {
        struct Dso *next;          /* in the hash table */
        struct Dso *newer, *older; /* by use, of those with symbols */
        DsoKind kind;
        size_t n_users;            /* mappings */
        BuildId id;
        bool has_mapped_id;        /* its id came with a mapping, or a list of the recording */
        uint32_t maj, min;
        uint64_t ino, ino_generation;
        uint32_t pid;              /* its first mapping: whose, and where */
        uint64_t start, end, offset;
        bool is_loaded;            /* it was tried */
        const char *note;          /* why it has no symbols, or "" */
        ElfSymbols *symbols;       /* NULL: none */
        LineIndex *lines;          /* NULL: none; only with symbols */
        const char *line_note;     /* why there are none, or not all, or "" */
        bool has_frames_tried;
        CallFrames *frames;        /* NULL: none */
        char *module;              /* path of the file of a module of the kernel; NULL: not known */
        size_t n_path;
        char path[];
} Dso;

typedef enum LifeKind {
        LIFE_EXEC,
        LIFE_FORK,
} LifeKind;

/* From then on it has other memory. */
typedef struct Life {
        uint64_t time;
        LifeKind kind;
        uint32_t parent; /* of LIFE_FORK */
} Life;

typedef struct JitDump {
        uint64_t offset; /* that was read so far; 0: its header was not */
        bool is_swapped, is_over, has_other_clock;
        uint64_t time;   /* of its mapping */
        char *path;      /* NULL: there is none */
        int64_t looked;  /* ns of CLOCK_MONOTONIC: when it was read last */
} JitDump;

typedef struct PerfMap {
        Dso *dso;           /* its path; NULL: not looked for yet */
        SymbolTable *table; /* NULL: it is not there */
        size_t size;        /* that was read */
        int64_t looked;     /* ns of CLOCK_MONOTONIC */
} PerfMap;

typedef struct Process {
        struct Process *next;          /* in the hash table */
        struct Process *newer, *older; /* by use */
        uint32_t pid;
        bool was_looked_at; /* /proc/PID/maps */
        AddressMap maps, jit;
        Life *lives; /* by time */
        size_t n_lives, lives_room;
        JitDump dump;
        PerfMap perf_map;
} Process;

typedef struct KnownId {
        struct KnownId *next;
        BuildId id;
        size_t n_path;
        char path[];
} KnownId;

typedef struct Cached {
        uint64_t generation; /* of `symbols`: 0 is never one */
        uint32_t pid;
        Validity validity;
        perfd_frame frame;
        Dso *dso; /* whose table has it; NULL: none */
} Cached;

/* Symbols of the kernel that runs, and the ranges of its modules. */
typedef struct Kernel {
        bool is_loaded;
        const char *note; /* why it has none, or "" */
        bool has_list;    /* it was read, or is not there */
        SymbolTable table, modules;
        KernelCache cache; /* what is in it is looked up there */
        Symbol cached;    /* what was found there last */
        KernelRange range;
        uint64_t text;    /* where _text is now; 0: not known */
        const char *modules_folder; /* what is known of each module; NULL: nothing */
        KnownId *module_ids; /* of those that were asked for */
} Kernel;

struct perfd_symbolizer {
        char *build_ids, *root, *kallsyms; /* NULL: "/", no list */
        char *symbol_cache; /* a folder; NULL: none */
        struct Debuginfod *debuginfod; /* NULL: no server is asked */
        size_t memory_max, table_bytes; /* bytes; of counts.bytes those of tables */
        bool is_remote, is_monotonic, has_parameters, has_lines;
        uint64_t order, generation;
        uint64_t last_time;     /* ns: that of what has none */
        Process *processes[HASH_SIZE];
        Process *newest, *oldest;
        Dso *dsos[HASH_SIZE];
        Dso *newest_dso, *oldest_dso;
        KnownId *known_ids[HASH_SIZE];
        size_t n_known_ids;
        Process *kernel_process; /* KSYMBOL records, and where modules are */
        Kernel kernel;
        BuildId kernel_id;
        uint64_t recorded_text; /* where _text was; 0: not known */
        bool has_build_ids;     /* the recording's own list was read */
        perfd_symbolizer_counts counts;
        perfd_frame *inlined;   /* that were given last */
        size_t inlined_room;
        Unwinder unwinder;
        Cached cache[CACHE_SIZE];
};

/* dso.c: below HASH_SIZE. */
size_t path_hash(perfd_text path);
/* What is mapped there, one user more. NULL: no memory */
Dso *dso_get(perfd_symbolizer *s, DsoKind kind, const perfd_mapping *m);
/* The mapping's own, or that of the recording's list. */
BuildId dso_known_id(const perfd_symbolizer *s, const perfd_mapping *m);
void dso_unref(perfd_symbolizer *s, Dso *dso);
/* It is used now: the last to give way. */
void dso_touch(perfd_symbolizer *s, Dso *dso);
/* Tables give way until there is room for that many bytes, all but those of one (NULL: none). */
void dsos_make_room(perfd_symbolizer *s, size_t bytes, const Dso *but);
/* Takes them as those of a file, with its lines (NULL: none). */
void dso_set_symbols(perfd_symbolizer *s, Dso *dso, ElfSymbols *symbols, LineIndex *lines);
/* A table had so many bytes, and has now, as names in it were demangled. */
void symbolizer_count_table(perfd_symbolizer *s, size_t before, size_t now);

/* lines.c: 0 and NULL: there are none, which the note explains; -ENOMEM */
int lines_read(perfd_symbolizer *s, const ElfSymbols *symbols, const char *root, const ElfFile *f, LineIndex **ret, const char **ret_note);
/* Takes NULL. */
void lines_free(LineIndex *lines);
size_t lines_bytes(const LineIndex *lines);
/* The line of a frame, or why it has none. */
void lines_set(const Dso *dso, uint64_t address, perfd_frame *frame);

/* find.c: as perfd_symbolizer_find(), and the file that it is in (NULL: none). */
int find_frame(perfd_symbolizer *s, uint32_t pid, uint64_t time, uint64_t ip, bool is_kernel, perfd_frame *ret, Dso **ret_dso);

/* What is mapped in a process at an address; of one that began before the records did, what it has now. NULL: nothing is. 0; -ENOMEM */
int user_mapping(perfd_symbolizer *s, uint32_t pid, uint64_t time, uint64_t ip, Validity *validity, Process **ret_owner, const Mapping **ret);

/* load.c: its symbols, or a note why there are none. 0; -ENOMEM */
int dso_load(perfd_symbolizer *s, Dso *dso);
/* The file itself; fd -1: it is not in one. False: it is not there. */
bool dso_open(perfd_symbolizer *s, Dso *dso, int *ret_fd, ElfFile *ret);
/* What was taken out of it and is here, by its build id or its link; no server is asked. */
bool dso_open_apart(const perfd_symbolizer *s, const Dso *dso, const ElfFile *of, int *ret_fd, ElfFile *ret);
/* debug-file.c: a file of that build id in the directories of build ids. False: there is none */
bool debug_file_by_id(const perfd_symbolizer *s, const BuildId *id, bool is_debug, int *ret_fd, ElfFile *ret);
/* The same of a server, where that is asked for. */
bool debug_file_of_server(const perfd_symbolizer *s, const BuildId *id, bool is_debug, int *ret_fd, ElfFile *ret);
/* The file that .gnu_debuglink names. False: there is none of that CRC */
bool debug_file_by_link(const perfd_symbolizer *s, const char *root, const char *path, const ElfFile *of, int *ret_fd, ElfFile *ret);

/* process.c: NULL: none, or with `add` no memory. */
Process *process_get(perfd_symbolizer *s, uint32_t pid, bool add);
/* It is the first to give way from now on, as long as nobody asks for it. */
void process_retire(perfd_symbolizer *s, Process *p);
void process_free(perfd_symbolizer *s, Process *p);
/* 0; -ENOMEM */
int process_add_life(perfd_symbolizer *s, Process *p, const Life *life);
/* Takes a name of the mapping, in either case, and a user of its dso. 0; -ENOMEM */
int process_add(perfd_symbolizer *s, Process *p, AddressMap *map, const Mapping *mapping);
/* What was mapped, in it or at its fork in a parent, and in whose memory. NULL: nothing was. */
const Mapping *process_find(perfd_symbolizer *s, uint32_t pid, uint64_t time, uint64_t ip, bool is_jit, Validity *validity, Process **ret_owner);

/* proc-maps.c: what the process has now. 0; -ENOMEM */
int proc_maps_read(perfd_symbolizer *s, Process *p);

/* kernel.c: fills in what it knows of a frame; without a name ret_module is what the file of a module may know (NULL: nothing). 0; -ENOMEM */
int kernel_find(perfd_symbolizer *s, uint64_t time, uint64_t ip, perfd_frame *frame, Validity *validity, const Mapping **ret_module);
void kernel_deinit(Kernel *k);

/* jit.c: what the process's JIT compiler has written since. 0; -ENOMEM */
int jit_read(perfd_symbolizer *s, Process *p, uint64_t ip);

/* The time now, ns of CLOCK_MONOTONIC. */
int64_t symbols_clock(void);
static inline perfd_text symbols_text(const char *text) {
        return (perfd_text){ .bytes = text, .length = strlen(text) };
}

/* symbolizer.c: as perfd_symbolizer_ksymbol(), of what is a part of that dso. */
int symbolizer_add_code(perfd_symbolizer *s, uint64_t time, uint64_t addr, uint64_t length, perfd_text name, perfd_text dso, bool is_unregister);
