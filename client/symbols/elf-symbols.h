/*
 * For this folder alone: the symbols of an ELF file, at the addresses that it was linked for, and the segments that say which address a
 * byte of the file has. A module of the kernel is linked when it is loaded: its addresses are those behind its begin. libelf reads it; what
 * it may read is bounded here first.
 */
#pragma once

#include <libelf.h>
#include <stdbool.h>

#include "client/symbols/table.h"

#define SEGMENTS_MAX 64
#define BUILD_ID_MAX 32

typedef struct BuildId {
        size_t n; /* 0: not known */
        uint8_t bytes[BUILD_ID_MAX];
} BuildId;

typedef struct Segment {
        uint64_t offset, file_size, address, memory_size;
        bool is_executable;
        uint32_t section; /* of a module, which has no segments: its number */
} Segment;

typedef struct ElfSymbols {
        SymbolTable table;
        Segment segments[SEGMENTS_MAX];
        size_t n_segments;
} ElfSymbols;

/* An ELF file that is read, by libelf. */
typedef struct ElfFile {
        Elf *elf;
        char *bytes;      /* that it is in; NULL: in a file */
        int fd;           /* without bytes: of the file, the caller's */
        size_t limit;     /* bytes that a section may have */
        bool has_symbols; /* .symtab */
        BuildId id;
        char link[256];   /* name in .gnu_debuglink; "": it has none */
        uint32_t link_crc;
} ElfFile;

#define ELF_FILE_NULL { .elf = NULL }

/* False: it is no ELF file, or one with more sections than any linker makes. The fd stays open until elf_file_close(). */
bool elf_file_open(ElfFile *f, int fd, size_t limit);
/* bytes: NULL or taken, in either case. */
bool elf_file_open_bytes(ElfFile *f, char *bytes, size_t n, size_t limit);
/* Of a compressed file, which may be closed then. */
bool elf_file_open_packed(ElfFile *f, int fd, size_t limit);
void elf_file_close(ElfFile *f);

/* A section by its name or else its type (SHT_NULL: any). NULL: there is none. */
Elf_Scn *elf_file_section(const ElfFile *f, const char *name, uint32_t type);
/* NULL: it has none in the file, or more than the limit. */
Elf_Data *elf_file_section_bytes(const ElfFile *f, Elf_Scn *section);
/* What xz(1) made of the symbols that the dynamic linker needs not: .gnu_debugdata. False: it has none */
bool elf_file_open_mini(const ElfFile *f, ElfFile *ret);

void elf_symbols_read_segments(ElfSymbols *s, const ElfFile *f);
/* Functions of .symtab or .dynsym within the executable segments. 0; -ENOMEM */
int elf_symbols_read(ElfSymbols *s, const ElfFile *f, uint32_t type);
/* plt.c: "malloc@plt". 0; -ENOMEM */
int elf_symbols_read_plt(ElfSymbols *s, const ElfFile *f);
/* The address that a byte of the file has. False: it has none. */
bool elf_symbols_address(const ElfSymbols *s, uint64_t offset, uint64_t *ret);
