/*
 * What is kept of each name is 31 bits of its hash, at a place in the table by others: that a name which the kernel does
 * not have looks like one that it has happens once in a billion typing errors, and then the kernel refuses it itself, with
 * fewer words. Whoever defines one probe does not pay for the next ones: the table is made when the list is
 * read for the second time.
 *
 * The list changes only by modules. They are known by /proc/modules, which shows one exactly as long as kallsyms does, and
 * by the inodes of their folders in /sys/module, since a module that is loaded again gets a new one. What is built in
 * without CONFIG_MODULES has neither and never changes. (BPF programs and trampolines are in the list too, but not here.)
 */
#include "daemon/kernel/symbol/kernel-symbol-index.h"

#include "daemon/base/cleanup.h"
#include "daemon/kernel/symbol/kernel-symbols.h"
#include "daemon/kernel/host/whole-file.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>

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

static void fill(KernelSymbolIndex *x, const char *text, size_t length) {
        const char *p = text, *name;
        size_t n = 1, n_name, at;

        for (const char *line = text; (line = memchr(line, '\n', (size_t)(text + length - line))); line++)
                n++;
        if (n > KERNEL_SYMBOL_INDEX_MAX)
                return;
        for (x->n_marks = 1024; x->n_marks < n + n / 2; x->n_marks *= 2)
                ;
        x->marks = calloc(x->n_marks, sizeof(*x->marks));
        if (!x->marks)
                return;
        for (p = text; kernel_symbols_next(&p, text + length, &name, &n_name);) {
                uint64_t hash = hash_bytes(name, n_name);

                if (count_marks(x, hash, &at) < 2) /* of some names there are hundreds */
                        x->marks[at] = (uint32_t)(hash >> 32) | 1;
        }
}

void kernel_symbol_index_add(KernelSymbolIndex *x, uint64_t modules, const char *text, size_t length) {
        bool was_read = x->was_read && x->modules == modules;

        if (was_read && x->marks)
                return;
        free(x->marks);
        *x = (KernelSymbolIndex){ .modules = modules, .was_read = true };
        if (was_read)
                fill(x, text, length);
}

bool kernel_symbol_index_has(const KernelSymbolIndex *x, uint64_t modules, const char *name) {
        size_t at;

        return x->marks && x->modules == modules && count_marks(x, hash_bytes(name, strlen(name)), &at) == 1;
}

void kernel_symbol_index_deinit(KernelSymbolIndex *x) {
        free(x->marks);
        *x = KERNEL_SYMBOL_INDEX_NULL;
}
