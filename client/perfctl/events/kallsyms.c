/*
 * Read whole when the first address is asked for: most streams have none, and it is some megabytes. For whom kptr_restrict hides
 * addresses, all of them are zero; those are no symbols, and addresses stay numbers. A stream of another machine has other
 * addresses: names are given only if host and kernel are those of this one.
 */
#include "client/perfctl/events/kallsyms.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "client/perfctl/base/perfctl.h"

#define TEXT_MAX ((size_t)256 << 20)
#define SYMBOL_MAX ((uint64_t)64 << 20) /* what seems larger is a gap: between the kernel and its modules, too */

void kallsyms_init(Kallsyms *k, const perfd_start *start) {
        struct utsname here;

        *k = KALLSYMS_NULL;
        k->is_here = uname(&here) == 0 && strcmp(here.nodename, start->host) == 0 && strcmp(here.release, start->kernel) == 0;
}

void kallsyms_deinit(Kallsyms *k) {
        free(k->text);
        free(k->list);
        *k = KALLSYMS_NULL;
}

/* "ffffffff81000000 T _stext", and behind a tab "[module]"; ends it by zeros. False: it is none, or has no address. */
static bool read_symbol(char *line, KernelSymbol *ret) {
        char *end, *module;

        ret->address = strtoull(line, &end, 16);
        if (ret->address == 0 || end[0] != ' ' || end[1] == '\0' || strchr("aAN", end[1]) || end[2] != ' ' || end[3] == '\0')
                return false;
        ret->name = end + 3;
        ret->module = "";
        module = strchr(end + 3, '\t');
        if (!module)
                return true;
        *module++ = '\0';
        end = module[0] == '[' ? strchr(module, ']') : NULL;
        if (end) {
                *end = '\0';
                ret->module = module + 1;
        }
        return true;
}

/* Of those at one address the first in the file stays first, which is the one that the kernel takes. */
static int by_address(const void *a, const void *b) {
        const KernelSymbol *x = a, *y = b;

        if (x->address != y->address)
                return x->address < y->address ? -1 : 1;
        return x->name < y->name ? -1 : x->name > y->name;
}

void kallsyms_read(Kallsyms *k, char *text) {
        size_t room = 1;

        for (const char *at = text; (at = strchr(at, '\n')); at++)
                room++;
        k->text = text;
        k->list = must_have(calloc(room, sizeof(*k->list)));
        k->is_read = true;
        for (char *line = text, *next; line; line = next) {
                next = strchr(line, '\n');
                if (next)
                        *next++ = '\0';
                if (k->n < room && read_symbol(line, &k->list[k->n]))
                        k->n++;
        }
        qsort(k->list, k->n, sizeof(*k->list), by_address);
}

/* NULL: it cannot be read. */
static char *file_text(const char *path) {
        FILE *file = fopen(path, "re");
        size_t room = (size_t)1 << 20, n = 0, got;
        char *text;

        if (!file)
                return NULL;
        text = must_have(malloc(room));
        while ((got = fread(text + n, 1, room - n - 1, file)) > 0) {
                n += got;
                if (n == room - 1 && room < TEXT_MAX)
                        text = must_have(realloc(text, room *= 2));
        }
        text[n] = '\0';
        (void)fclose(file);
        return text;
}

bool kallsyms_find(void *userdata, uint64_t address, perfd_symbol *ret) {
        Kallsyms *k = userdata;
        size_t low = 0, high, after;

        if (!k->is_here)
                return false;
        if (!k->is_read) {
                char *text = file_text("/proc/kallsyms");

                k->is_read = true;
                if (text)
                        kallsyms_read(k, text);
        }
        for (high = k->n; low < high;) {
                size_t middle = low + (high - low) / 2;

                if (k->list[middle].address <= address)
                        low = middle + 1;
                else
                        high = middle;
        }
        if (low == 0 || low == k->n) /* behind the last one nothing says where it ends */
                return false;
        after = low--;
        while (low > 0 && k->list[low - 1].address == k->list[low].address)
                low--;
        if (k->list[after].address - k->list[low].address > SYMBOL_MAX)
                return false;
        *ret = (perfd_symbol){ .name = k->list[low].name, .module = k->list[low].module, .address = k->list[low].address,
                               .size = k->list[after].address - k->list[low].address };
        return true;
}
