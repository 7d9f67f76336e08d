/*
 * For probes: where a symbol of an ELF file lies. A file is foreign data: whatever it says is checked, and what cannot be right
 * is refused with where and what. However large its tables are, an open one takes some 9 MiB at most. Blocking reads, which have
 * checkpoints; no global state, any thread, one at a time.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "daemon/base/error.h"

#define BUILD_ID_SIZE_MAX 20

typedef struct ElfFile ElfFile;

/* Opens for reading; the fd stays open until close, so that all answers are about one file. REFUSED_NOT_FOUND
 * "no-file", REFUSED_DENIED, REFUSED_EXHAUSTED, REFUSED_INVALID "bad-elf": not ELF, truncated, no program or library,
 * another byte order (another architecture's word size is fine). */
int elf_file_open(const char *path, ElfFile **ret, Explanation *e);
/* The same of a file that is open already, by O_PATH too; the path is for messages. The fd stays the caller's. */
int elf_file_open_fd(int fd, const char *path, ElfFile **ret, Explanation *e);
/* The same for bytes in memory, which are borrowed: for tests and fuzzers. */
int elf_file_open_memory(const void *bytes, size_t size, const char *path, ElfFile **ret, Explanation *e);
ElfFile *elf_file_close(ElfFile *f);

/* Bytes of the build id, 0 if there is none. */
size_t elf_file_build_id(const ElfFile *f, uint8_t ret_id[static BUILD_ID_SIZE_MAX]);
void elf_file_inode(const ElfFile *f, dev_t *ret_device, ino_t *ret_inode);

typedef struct ElfPlace {
        uint64_t address;     /* in the file's own terms: the symbol's and the offset */
        uint64_t file_offset; /* where a uprobe goes: address - p_vaddr + p_offset of the segment that holds it */
        uint64_t begin;       /* of the symbol; of an address itself */
        uint64_t size;        /* of the symbol, 0 unknown */
        char symbol[256];     /* what was found: of alternates the one; "" for an address */
} ElfPlace;

/*
 * `symbol` is "name", "name@VERSION" (versioned names; a name alone means the default version). .symtab, then .dynsym;
 * functions before other types, global before local ones; a name that several of these have is refused as ambiguous
 * (REFUSED_INVALID "ambiguous-symbol") unless all lie in one place, with their addresses. offset has to lie inside
 * the symbol where its size is known. REFUSED_NOT_FOUND "unknown-symbol" with the nearest name; REFUSED_UNSUPPORTED
 * "ifunc": STT_GNU_IFUNC has no code of its own: names the candidates where it can. Also tried if the name alone does
 * not resolve: NAME.isra.N and NAME.constprop.N, of which several are ambiguous, then NAME.part.N; NAME.cold is never
 * taken.
 */
int elf_file_find(const ElfFile *f, const char *symbol, uint64_t offset, ElfPlace *ret, Explanation *e);
/* An address in the file's own terms (as nm prints it). REFUSED_INVALID "bad-address": no executable segment has it. */
int elf_file_find_address(const ElfFile *f, uint64_t address, ElfPlace *ret, Explanation *e);
/*
 * Whether an instruction begins at a place that one of these two found. REFUSED_INVALID "bad-address": none does, with where the
 * ones around it begin. *ret_is_known false: it cannot be said, because no symbol holds the address, or too large a one, an
 * instruction before it is not known, or it is code of a machine that is neither x86-64 nor arm64.
 */
int elf_file_check_instruction(const ElfFile *f, const ElfPlace *place, bool *ret_is_known, Explanation *e);
/* All function names that match a glob, sorted, once each; free each and the list.
 * What elf_file_find() takes: "name", or "name@VERSION" where the name alone means another one.
 * *ret_is_cut: there are more than so many, or than 4 MiB of them. Refusals of reading; -ENOMEM. */
#define ELF_MATCHES_MAX 32768
int elf_file_match(const ElfFile *f, const char *glob, char ***ret_names, size_t *ret_n, bool *ret_is_cut, Explanation *e);

/* One site of a static probe (.note.stapsdt). */
typedef struct ElfProbe {
        char *provider, *name;
        uint64_t file_offset;      /* of the nop */
        uint64_t semaphore_offset; /* in the file, 0: none */
        /* Another writable segment, mapped earlier, has the same page of the file (lld does that in small programs).
         * The kernel raises the semaphore there: programs started after the probe was enabled do not see it. */
        bool semaphore_is_shadowed;
        char *arguments;           /* "8@%rdi -4@8(%rsp)", as in the note */
        uint16_t machine;          /* EM_X86_64, ...: what the arguments are written for */
} ElfProbe;

/*
 * All sites that match (globs; NULL: all). REFUSED_NOT_FOUND "unknown-probe" with near names; REFUSED_INVALID "bad-elf": also if
 * there are more of them, or longer ones, than in any program.
 */
int elf_file_probes(const ElfFile *f, const char *provider, const char *name, ElfProbe **ret, size_t *ret_n,
                    Explanation *e);
void elf_probes_free(ElfProbe *probes, size_t n);

/*
 * The arguments of a static probe as fetch args of uprobe_events: "arg1=%di:u64 arg2=+8(%sp):s32". Operands that the
 * kernel cannot fetch are left out and named in the explanation (reason "unfetchable"; NULL: none was).
 * For x86-64 and arm64. NULL: no memory.
 */
char *elf_probe_fetch_args(const ElfProbe *p, Explanation *e);
