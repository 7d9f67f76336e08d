/*
 * For elf-*.c alone: an ElfFile from the inside. Of the file's bytes only a few are held, in views (elf/read.c): whatever
 * sizes it claims, looking at it takes the same memory. So a value is checked when it is read, each time.
 */
#pragma once

#include <elf.h>

#include "daemon/kernel/elf/file.h"

/* Bytes of one table, far beyond those of the largest programs: .strtab of a browser with all names has 0.3 GiB. */
#define ELF_TABLE_SIZE_MAX (UINT64_C(1) << 30)
/* Bytes of a name, which else is none: mangled ones have some thousands, and a file of one's own any. */
#define ELF_NAME_SIZE_MAX 65536
#define ELF_VERSION_SIZE_MAX 1024

/* What was read last of the bytes of one kind, for the next reads near them. */
typedef enum ElfView {
        ELF_VIEW_HEADERS,
        ELF_VIEW_ENTRIES, /* of symbols, definitions of versions, notes; instructions */
        ELF_VIEW_VERSIONS,
        ELF_VIEW_STRINGS,
        _ELF_VIEW_MAX,
} ElfView;

typedef struct ElfSegment {
        uint64_t address, offset;
        uint64_t size;      /* bytes in the file */
        bool is_executable, is_writable;
} ElfSegment;

/* Bytes of the file, inside its size. */
typedef struct ElfRange {
        uint64_t offset, size;
} ElfRange;

/* .symtab or .dynsym. */
typedef struct ElfTable {
        size_t section;
        uint64_t offset;
        size_t n;
        ElfRange strings;
        uint64_t versions;       /* where .gnu.version begins: one for each symbol; 0: there is none */
        uint32_t *version_names; /* of .gnu.version_d, by its index: where in version_strings; 0: nothing is defined */
        ElfRange version_strings;
} ElfTable;

struct ElfFile {
        char *path;
        int fd; /* -1: the bytes are the caller's memory */
        dev_t device;
        ino_t inode;
        const char *memory;
        uint64_t size;
        bool is_64;
        Elf64_Ehdr header; /* as all of a file for 32 bits, widened */
        struct ElfBlocks *views[_ELF_VIEW_MAX];
        char *name, *version; /* those of the symbol that was read last */
        ElfSegment *segments; /* PT_LOAD */
        size_t n_segments;
        ElfTable tables[2]; /* .symtab, .dynsym; n 0: there is none */
        uint8_t build_id[BUILD_ID_SIZE_MAX];
        size_t n_build_id;
};

/* One symbol. Its texts are those of the file's that was read last. */
typedef struct ElfSymbol {
        const char *name;
        size_t n_name; /* without its version */
        const char *version; /* NULL: none */
        bool is_default; /* what the name alone means: it has no version, or is the default one */
        bool is_defined; /* here, at an address */
        unsigned char type, binding; /* STT_, STB_ */
        uint64_t address, size;
} ElfSymbol;

/* REFUSED_INVALID "bad-elf": "PATH: what". */
int elf_file_refuse(const ElfFile *f, Explanation *e, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* After the fd, or memory, and the size are set: headers, segments, where tables are, build id. */
int elf_file_load_all(ElfFile *f, Explanation *e);
/* The segment whose bytes in the file hold the address, NULL if none does. */
const ElfSegment *elf_file_segment(const ElfFile *f, uint64_t address);

/*
 * Reading, elf/read.c. Each may refuse with "bad-elf", or as checkpoint() does; -ENOMEM.
 */
int elf_file_make_views(ElfFile *f);
void elf_file_free_views(ElfFile *f);
/* Whether the file has such bytes, and no more of them than a table can have. */
int elf_file_check_range(const ElfFile *f, uint64_t offset, uint64_t size, const char *what, Explanation *e);
/* Bytes of a range that was checked. */
int elf_file_read(const ElfFile *f, ElfView view, uint64_t offset, void *to, size_t size, Explanation *e);
/* The text at `at`, which is inside the strings: without its end at most size - 1 bytes of it, cut off; *ret_n of `size` says so. */
int elf_file_read_text(const ElfFile *f, const ElfRange *strings, uint64_t at, char *to, size_t size, size_t *ret_n,
                       Explanation *e);
/* Whether the text there begins with n bytes. */
int elf_file_text_begins(const ElfFile *f, const ElfRange *strings, uint64_t at, const char *with, size_t n, bool *ret,
                         Explanation *e);
int elf_file_program_header(const ElfFile *f, size_t index, Elf64_Phdr *ret, Explanation *e);
/* The header of a section, whatever it says. */
int elf_file_section_header(const ElfFile *f, size_t index, Elf64_Shdr *ret, Explanation *e);
/* The same of a section whose bytes are needed: the file has them. */
int elf_file_section(const ElfFile *f, size_t index, Elf64_Shdr *ret, Explanation *e);

/* What section `index` says of its symbols, into a zeroed table. */
int elf_table_load(const ElfFile *f, size_t index, ElfTable *t, Explanation *e);
void elf_table_deinit(ElfTable *t);
/*
 * Symbol i, now and then with a checkpoint(). prefix, of n_prefix bytes: what its name has to begin with, or only that it is not
 * defined comes out of it; 0: any name. Refused: its name lies where there is none.
 */
int elf_table_symbol(const ElfFile *f, const ElfTable *t, size_t i, const char *prefix, size_t n_prefix, ElfSymbol *ret,
                     Explanation *e);

/* A note; its bytes lie in the file, where they were checked to be. */
typedef struct ElfNote {
        uint32_t type;
        uint64_t owner, bytes;
        uint32_t n_owner, size;
} ElfNote;

/*
 * The note at *at of a range of notes, which moves behind it, with a checkpoint(). *ret_is_note false: the end, or (*at is not the
 * range's size) no note. alignment: of the section or segment.
 */
int elf_note_next(const ElfFile *f, const ElfRange *notes, uint64_t alignment, uint64_t *at, ElfNote *ret, bool *ret_is_note,
                  Explanation *e);
int elf_note_is(const ElfFile *f, const ElfNote *n, const char *owner, uint32_t type, bool *ret, Explanation *e);
