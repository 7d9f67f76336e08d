/*
 * What tracefs and kallsyms hold is written by everyone on the host. The first byte says how the rest is read: as lines
 * of definitions, as a user's fetch args, as error_log before and after (a zero byte between) for the command that its
 * last line holds, as kallsyms, or as definitions and their profile.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/cleanup.h"
#include "daemon/kernel/symbol/kernel-symbol-index.h"
#include "daemon/kernel/symbol/kernel-symbols.h"
#include "daemon/kernel/probe/dynamic.h"
#include "daemon/kernel/probe/names.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

#define MUST(x)                                                                                                        \
        do {                                                                                                           \
                if (!(x))                                                                                              \
                        abort();                                                                                       \
        } while (0)

#define NAME_LETTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_"

static void check_lines(const char *text) {
        for (const char *line = text; *line;) {
                size_t n = strcspn(line, "\n");
                char again[PROBE_GROUP_SIZE];
                ProbeOwner owner;
                ProbeLine l;

                if (probe_line_parse(line, n, &l)) {
                        /* a name that goes into a path and into a definition */
                        MUST(l.n_group > 0 && strspn(l.group, NAME_LETTERS) == l.n_group && l.group[l.n_group] == '/');
                        MUST(l.n_name > 0 && strspn(l.name, NAME_LETTERS) >= l.n_name);
                        MUST(l.name == l.group + l.n_group + 1);
                        MUST(l.group > line && l.name + l.n_name <= line + n);
                        if (probe_owner_parse(l.group, l.n_group, &owner)) {
                                MUST(owner.pid > 0);
                                probe_owner_group(&owner, again);
                                MUST(strlen(again) == l.n_group && memcmp(again, l.group, l.n_group) == 0);
                        }
                }
                line += n + (line[n] == '\n');
        }
}

static void check_args(const char *text) {
        _cleanup_(probe_args_deinit) ProbeArgs a = PROBE_ARGS_NULL;
        char name[PROBE_NAME_SIZE];
        Explanation e = EXPLANATION_NULL;
        int r = probe_args_parse(text, &a, &e);

        probe_name('p', 1, 0, 2, text, name);
        MUST(strspn(name, NAME_LETTERS) == strlen(name) && strlen(name) < PROBE_NAME_SIZE);
        if (r != 0) {
                MUST(r == REFUSED_INVALID && e.position >= 1 && e.position <= strlen(text));
                return;
        }
        MUST(!strpbrk(a.text, "\n\t\r#") && !strstr(a.text, "  ") && a.text[0] != ' ');
        for (size_t i = 0; i <= strlen(a.text); i++)
                MUST(a.origins[i] <= strlen(text) && (i == 0 || a.origins[i] > a.origins[i - 1]));
}

static void check_complaint(const char *before, const char *after) {
        const char *last = strrchr(after, '\n'), *command = last ? last + 1 : after;
        ProbeComplaint c;

        if (probe_complaint_find(before, after, command, &c))
                MUST(c.text >= after && c.text + c.n_text <= after + strlen(after) && !memchr(c.text, '\n', c.n_text));
}

static void check_symbols(const char *text, size_t length) {
        char *names[] = { (char *)"vfs_read", (char *)"foo" }, found[KERNEL_SYMBOL_TEXT_SIZE];
        KernelSymbolIndex index = KERNEL_SYMBOL_INDEX_NULL;
        Explanation e = EXPLANATION_NULL;
        size_t hints = 2;
        int r = kernel_symbols_find(text, length, names, 2, &hints, found, &e);

        MUST(r == 0 || r == REFUSED_NOT_FOUND || r == REFUSED_INVALID);
        if (r == 0)
                MUST(strncmp(found, "vfs_read", 8) == 0 || strncmp(found, "foo", 3) == 0);
        /* what is known to be there once is what would be found */
        MUST(kernel_symbol_index_add(&index, 0, text, length, NULL) == 0);
        MUST(kernel_symbol_index_add(&index, 0, text, length, NULL) == 0);
        if (kernel_symbol_index_has(&index, 0, "vfs_read"))
                MUST(r == 0 && strcmp(found, "vfs_read") == 0);
        if (kernel_symbol_index_lacks(&index, 0, "vfs_read") && kernel_symbol_index_lacks(&index, 0, "foo"))
                MUST(r == REFUSED_NOT_FOUND);
        kernel_symbol_index_deinit(&index);
        r = kernel_symbols_check(text, length, NULL, UINT64_C(0xffffffff81000010), found, &e);
        MUST(r == 0 || r == REFUSED_INVALID || r == KERNEL_SYMBOLS_E_HIDDEN);
        r = kernel_symbols_check(text, length, "foo", 0x10, found, &e);
        MUST(r == 0 ? strcmp(found, "foo+0x10") == 0 : r == REFUSED_INVALID || r == KERNEL_SYMBOLS_E_HIDDEN);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length) {
        _cleanup_free_ char *first = NULL, *second = NULL;
        uint64_t hits, missed;
        size_t n_first;

        if (length == 0)
                return 0;
        MUST(first = strndup((const char *)bytes + 1, length - 1));
        n_first = strlen(first);
        MUST(second = n_first + 2 <= length ? strndup((const char *)bytes + n_first + 2, length - n_first - 2)
                                            : strdup(""));
        switch (bytes[0] % 5) {
        case 0:
                check_lines(first);
                break;
        case 1:
                check_args(first);
                break;
        case 2:
                check_complaint(first, second);
                break;
        case 3:
                check_symbols((const char *)bytes + 1, length - 1); /* zero bytes too */
                break;
        case 4:
                (void)probe_profile_find(first, second, length % 2, "perfd_0000000000000001", "p1_f", &hits, &missed);
                break;
        }
        return 0;
}
