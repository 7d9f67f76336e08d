/*
 * For probes: names and addresses of the kernel's functions, as /proc/kallsyms lists them. Whatever stands in the text
 * is foreign: lines that cannot be right are left out. Any thread.
 *
 *     ffffffff812009c0 t kzalloc_noprof.constprop.0
 *     0000000000000000 t nf_hook_slow	[nf_conntrack]       addresses are 0 for who may not see them (kptr_restrict)
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/base/error.h"

#define KERNEL_SYMBOLS_PATH "/proc/kallsyms"
#define KERNEL_SYMBOL_SIZE 512 /* KSYM_NAME_LEN since Linux 6.1, with the zero */

enum {
        KERNEL_SYMBOLS_E_HIDDEN = _REFUSED_MAX, /* there is no list to look into: only the kernel knows */
};

/*
 * The list, in malloc'ed memory. KERNEL_SYMBOLS_E_HIDDEN if it cannot be read or is empty. -ENOMEM. This and all that goes through
 * the list has checkpoints, and refuses as they do.
 */
int kernel_symbols_read(const char *path, char **ret_text, size_t *ret_length, Explanation *e);

/*
 * Of alternates the first that means one function, into `ret`. A name that is not there itself also means what the
 * compiler made of it: NAME.isra.N, NAME.constprop.N, NAME.llvm.N and combinations, at last NAME.part.N, never
 * NAME.cold. REFUSED_NOT_FOUND "unknown-symbol" with the nearest name,
 * for which each alternate is compared with all functions: *hints alternates more, and it counts down. REFUSED_INVALID "ambiguous-symbol" if several
 * functions have the name, with their addresses where they can be seen: a probe would trace one of them, and which one
 * is up to the kernel's version.
 */
int kernel_symbols_find(const char *text, size_t length, char *const *names, size_t n_names, size_t *hints,
                        char ret[static KERNEL_SYMBOL_SIZE], Explanation *e);
/* The same refusal of what is known not to be there. text: NULL if there are no hints any more. */
int kernel_symbols_refuse_unknown(const char *text, size_t length, char *const *names, size_t n_names, size_t *hints,
                                  Explanation *e);

/* The name of the next function that can be probed by its name, and moves *p behind its line. */
bool kernel_symbols_next(const char **p, const char *end, const char **ret_name, size_t *ret_n);

#define KERNEL_SYMBOL_TEXT_SIZE (KERNEL_SYMBOL_SIZE + 20)

/*
 * Whether a function is at an address, and at `offset` behind a symbol still the same one: "vfs_read+0x10" into `ret`.
 * symbol NULL: offset is the address. REFUSED_INVALID "bad-address"; KERNEL_SYMBOLS_E_HIDDEN if the list shows no
 * address.
 */
int kernel_symbols_check(const char *text, size_t length, const char *symbol, uint64_t offset,
                         char ret[static KERNEL_SYMBOL_TEXT_SIZE], Explanation *e);
