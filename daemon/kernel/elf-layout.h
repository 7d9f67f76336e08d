/*
 * For elf-*.c alone: an ElfFile from the inside. Everything that libelf reads lies in `image`, which only holds what
 * was asked for by elf_file_load() and does not change any more, so what was checked once stays true.
 */
#pragma once

#include <gelf.h>

#include "daemon/kernel/elf-file.h"

/* Bytes of one table, far beyond those of the largest programs: .strtab of a browser with all names has 0.3 GiB. */
#define ELF_TABLE_SIZE_MAX (UINT64_C(1) << 30)

#define ELF_PAGE_SIZE 4096 /* of the image, whatever the machine's is */

typedef struct ElfSegment {
        uint64_t address, offset;
        uint64_t size;      /* bytes in the file */
        bool is_executable, is_writable;
} ElfSegment;

/* .symtab or .dynsym. Every symbol's name lies in `strings` and ends there: elf_table_load() looked. */
typedef struct ElfTable {
        Elf_Data *symbols;
        size_t n;
        const char *strings;
        Elf_Data *versions;         /* .gnu.version: one for each symbol; NULL: none */
        const char **version_names; /* of .gnu.version_d, by its index; NULL where nothing is defined */
        size_t n_version_names;
} ElfTable;

struct ElfFile {
        char *path;
        int fd; /* -1: the image is the caller's memory */
        dev_t device;
        ino_t inode;
        char *image;
        size_t size;
        bool *pages; /* of the image: already read; NULL: all of it is there */
        Elf *elf;
        GElf_Ehdr header;
        ElfSegment *segments; /* PT_LOAD */
        size_t n_segments;
        ElfTable tables[2]; /* .symtab, .dynsym; n 0: there is none */
        uint8_t build_id[BUILD_ID_SIZE_MAX];
        size_t n_build_id;
};

/* One defined symbol. */
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
/* After image and size are set: headers, segments, tables, build id. */
int elf_file_load_all(ElfFile *f, Explanation *e);
/* Makes a range of the file part of the image. REFUSED_INVALID if the file has no such bytes. */
int elf_file_load(const ElfFile *f, uint64_t offset, uint64_t size, const char *what, Explanation *e);
/* The bytes of a section; NULL in *ret if it is empty. */
int elf_file_load_section(const ElfFile *f, size_t index, Elf_Data **ret, GElf_Shdr *ret_header, Explanation *e);
/* The segment whose bytes in the file hold the address, NULL if none does. */
const ElfSegment *elf_file_segment(const ElfFile *f, uint64_t address);

/* The symbols of section `index` into a zeroed table. */
int elf_table_load(const ElfFile *f, size_t index, ElfTable *t, Explanation *e);
void elf_table_deinit(ElfTable *t);
ElfSymbol elf_table_symbol(const ElfTable *t, size_t i);
/* For whoever walks a table, at symbol i: checkpoint(), now and then. */
int elf_table_checkpoint(size_t i, Explanation *e);

/* Notes of one range of bytes. */
typedef struct ElfNote {
        uint32_t type;
        const char *owner; /* not terminated */
        size_t n_owner;
        const uint8_t *bytes;
        size_t size;
} ElfNote;

/* The note at *offset, which moves behind it. False: the end, or (*offset is not data->d_size) no note. */
bool elf_note_next(Elf_Data *notes, size_t *offset, ElfNote *ret);
bool elf_note_is(const ElfNote *n, const char *owner, uint32_t type);
