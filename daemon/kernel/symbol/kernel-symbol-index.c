/*
 * What is kept of each name is 31 bits of its hash, at a place in the table by others: that a name which the kernel does
 * not have looks like one that it has happens once in a billion typing errors, and then the kernel refuses it itself, with
 * fewer words. Whoever defines one probe does not pay for the next ones: the table is made when the list is
 * used for the second time. What the compiler made of a function (NAME.isra.0) is also marked by its begin, so that what has no mark
 * at all is known to be nowhere in the list.
 *
 * The list itself is kept as long as an operation lasts, because one request may name thousands of functions that the kernel does not
 * have. It has references, since who reads it may be suspended at a checkpoint while another operation ends.
 *
 * The list changes only by modules. They are known by /proc/modules, which shows one exactly as long as kallsyms does, and
 * by the inodes of their folders in /sys/module, since a module that is loaded again gets a new one. What is built in
 * without CONFIG_MODULES has neither and never changes. (BPF programs and trampolines are in the list too, but not here.)
 */
#include "daemon/kernel/symbol/kernel-symbol-index.h"

#include "daemon/base/checkpoint.h"
#include "daemon/base/cleanup.h"
#include "daemon/kernel/symbol/kernel-symbols.h"
#include "daemon/kernel/host/whole-file.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>

#define NAMES_AT_ONCE 512 /* between two checkpoints */

static uint64_t mix(uint64_t h, uint64_t word) {
        h = (h ^ word) * UINT64_C(0x9e3779b97f4a7c15);
        return h ^ h >> 29;
}

static uint64_t hash_bytes(const char *at, size_t n) {
        uint64_t h = n, word;

        for (; n >= sizeof(word); at += sizeof(word), n -= sizeof(word)) {
                memcpy(&word, at, sizeof(word));
                h = mix(h, word);
        }
        word = 0;
        memcpy(&word, at, n);
        return mix(mix(h, word), 0);
}

/* "nf_conntrack 172032 1 nf_nat, Live 0xffffffffc0a5f000": without how many use it, and who, which always changes. */
static uint64_t hash_modules(const char *text) {
        uint64_t h = 0;

        while (*text) {
                size_t length = strcspn(text, "\n"), n_word = 0;

                for (const char *p = text; p < text + length; n_word++) {
                        size_t n = strcspn(p, " \n");

                        if (n_word != 2 && n_word != 3)
                                h = mix(h, hash_bytes(p, n));
                        p += n + (p[n] == ' ');
                }
                text += length + (text[length] == '\n');
        }
        return h;
}

uint64_t kernel_symbol_index_modules(const char *root) {
        _cleanup_free_ char *modules = NULL, *folder = NULL, *text = NULL;
        uint64_t sum = 0;
        DIR *d = NULL;
        size_t length;

        if (asprintf(&modules, "%s/proc/modules", root) < 0) {
                modules = NULL;
                return 0;
        }
        if (asprintf(&folder, "%s/sys/module", root) < 0) {
                folder = NULL;
                return 0;
        }
        if (whole_file_read(modules, &text, &length) == 0)
                sum = hash_modules(text);
        d = opendir(folder);
        for (struct dirent *entry; d && (entry = readdir(d));)
                sum += mix(hash_bytes(entry->d_name, strlen(entry->d_name)), entry->d_ino); /* in whatever order */
        if (d)
                closedir(d);
        return sum;
}

/* Of the begin of a name, which is not the same as a function of that name. */
static uint64_t hash_of_begin(const char *at, size_t n) {
        return mix(hash_bytes(at, n), '.');
}

/* How often a mark is there, up to twice, from its place on; and where there is room for it. */
static unsigned count_marks(const KernelSymbolIndex *x, uint64_t hash, size_t *ret_free) {
        uint32_t mark = (uint32_t)(hash >> 32) | 1; /* 0 means nothing */
        size_t at = hash & (x->n_marks - 1);
        unsigned n = 0;

        for (; x->marks[at] != 0; at = (at + 1) & (x->n_marks - 1))
                n += x->marks[at] == mark;
        *ret_free = at;
        return n;
}

static void add_mark(KernelSymbolIndex *x, uint64_t hash) {
        size_t at;

        if (count_marks(x, hash, &at) < 2) /* of some names there are hundreds */
                x->marks[at] = (uint32_t)(hash >> 32) | 1;
}

/* Marks that the list needs, at most: a line has one, and one more if there is a dot in it. */
static size_t count_names(const char *text, size_t length) {
        const char *end = text + length, *newline;
        size_t n = 1;

        for (const char *line = text; (newline = memchr(line, '\n', (size_t)(end - line))); line = newline + 1)
                n += 1 + (memchr(line, '.', (size_t)(newline - line)) != NULL);
        return n + 1;
}

/* Into another one, since others may use x at a checkpoint. Without memory there is none. */
static int fill(KernelSymbolIndex *x, const char *text, size_t length, Explanation *e) {
        const char *p = text, *name, *dot;
        size_t n = count_names(text, length), n_name, i = 0;
        int r = 0;

        if (n > KERNEL_SYMBOL_INDEX_MAX)
                return 0;
        for (x->n_marks = 1024; x->n_marks < n + n / 2; x->n_marks *= 2)
                ;
        x->marks = calloc(x->n_marks, sizeof(*x->marks));
        while (r == 0 && x->marks && kernel_symbols_next(&p, text + length, &name, &n_name)) {
                add_mark(x, hash_bytes(name, n_name));
                dot = memchr(name, '.', n_name);
                if (dot)
                        add_mark(x, hash_of_begin(name, (size_t)(dot - name)));
                r = i++ % NAMES_AT_ONCE == 0 ? checkpoint(e) : 0;
        }
        return r;
}

int kernel_symbol_index_add(KernelSymbolIndex *x, uint64_t modules, const char *text, size_t length, Explanation *e) {
        bool was_read = x->was_read && x->modules == modules;
        KernelSymbolIndex filled = KERNEL_SYMBOL_INDEX_NULL;
        int r;

        if (was_read && x->marks)
                return 0;
        r = was_read ? fill(&filled, text, length, e) : 0;
        free(r == 0 ? x->marks : filled.marks);
        if (r != 0)
                return r;
        x->marks = filled.marks;
        x->n_marks = filled.n_marks;
        x->modules = modules;
        x->was_read = true;
        return 0;
}

bool kernel_symbol_index_has(const KernelSymbolIndex *x, uint64_t modules, const char *name) {
        size_t at;

        return x->marks && x->modules == modules && count_marks(x, hash_bytes(name, strlen(name)), &at) == 1;
}

bool kernel_symbol_index_lacks(const KernelSymbolIndex *x, uint64_t modules, const char *name) {
        const size_t n = strlen(name);
        size_t at;

        return x->marks && x->modules == modules && !memchr(name, '.', n) && count_marks(x, hash_bytes(name, n), &at) == 0 &&
               count_marks(x, hash_of_begin(name, n), &at) == 0;
}

void kernel_symbol_list_unref(KernelSymbolList *list) {
        if (!list || --list->n_refs > 0)
                return;
        free(list->text);
        free(list);
}

static KernelSymbolList *take(KernelSymbolList *list) {
        list->n_refs++;
        return list;
}

int kernel_symbol_index_list(KernelSymbolIndex *x, uint64_t modules, const char *path, KernelSymbolList **ret, Explanation *e) {
        KernelSymbolList *list;
        int r;

        if (x->list && x->list->modules == modules) {
                *ret = take(x->list);
                return 0;
        }
        list = malloc(sizeof(*list));
        if (!list)
                return error_origin(-ENOMEM);
        *list = (KernelSymbolList){ .n_refs = 1, .modules = modules };
        r = kernel_symbols_read(path, &list->text, &list->length, e);
        if (r != 0) {
                kernel_symbol_list_unref(list);
                return r;
        }
        kernel_symbol_list_unref(x->list);
        x->list = take(list);
        *ret = list;
        return 0;
}

void kernel_symbol_index_forget(KernelSymbolIndex *x) {
        kernel_symbol_list_unref(x->list);
        x->list = NULL;
        x->hints = KERNEL_SYMBOL_HINTS;
}

void kernel_symbol_index_deinit(KernelSymbolIndex *x) {
        kernel_symbol_index_forget(x);
        free(x->marks);
        *x = KERNEL_SYMBOL_INDEX_NULL;
}
