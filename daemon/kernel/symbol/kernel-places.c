/* Data is kept, too: without it what lies behind the last function of a module, or of the kernel, would be that function. */
#include "daemon/kernel/symbol/kernel-places.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/base/array.h"
#include "daemon/base/checkpoint.h"
#include "daemon/base/cleanup.h"
#include "daemon/kernel/symbol/kernel-symbols.h"

#define LINES_BETWEEN 4096           /* checkpoints */
#define TEXT_MAX ((size_t)UINT32_MAX) /* where lines are is in 32 bits */
#define FUNCTION_MAX ((uint64_t)1 << 24) /* bytes: what is further behind the last symbol of a region is not of it */

struct KernelPlaceEntry {
        uint64_t address;
        uint32_t name;       /* where in the text */
        uint32_t is_text;
};

static bool parse_address(const char **at, uint64_t *ret) {
        uint64_t value = 0;
        const char *begin = *at;

        for (;; (*at)++) {
                const unsigned decimal = (unsigned char)**at - '0', letter = (unsigned char)**at - 'a';

                if (decimal > 9 && letter > 5)
                        break;
                value = value << 4 | (decimal <= 9 ? decimal : letter + 10);
        }
        *ret = value;
        return *at != begin && *at - begin <= 16 && value != 0;
}

/* "ffffffff81000000 T _stext", and behind a tab "[module]". False: it is no such line, or its address is hidden. */
static bool parse_line(const char *text, const char *line, struct KernelPlaceEntry *ret) {
        const char *at = line;

        if (!parse_address(&at, &ret->address) || at[0] != ' ' || !at[1] || at[2] != ' ' || at[3] == '\0' || at[3] == '\n')
                return false;
        ret->is_text = strchr("tTwW", at[1]) != NULL;
        ret->name = (uint32_t)(at + 3 - text);
        return true;
}

/* Of one address functions come last, and among them the last line. */
static int compare(const void *a, const void *b) {
        const struct KernelPlaceEntry *x = a, *y = b;

        if (x->address != y->address)
                return x->address < y->address ? -1 : 1;
        if (x->is_text != y->is_text)
                return x->is_text < y->is_text ? -1 : 1;
        return (x->name > y->name) - (x->name < y->name);
}

/* The list is sorted but for some regions of it: only then does it take long. */
static void sort(KernelPlaces *p) {
        size_t n = 0;

        for (size_t i = 1; i < p->n; i++)
                if (compare(&p->list[i - 1], &p->list[i]) > 0) {
                        qsort(p->list, p->n, sizeof(*p->list), compare);
                        break;
                }
        for (size_t i = 0; i < p->n; i++) /* the last of each address */
                if (i + 1 == p->n || p->list[i + 1].address != p->list[i].address)
                        p->list[n++] = p->list[i];
        p->n = n;
}

static int parse(KernelPlaces *p, size_t length, Explanation *e) {
        size_t n_allocated = 0, n_lines = 0;
        int r = 0;

        for (const char *line = p->text, *next; r == 0 && line < p->text + length; line = next) {
                const char *end = memchr(line, '\n', (size_t)(p->text + length - line));

                next = end ? end + 1 : p->text + length;
                if (++n_lines % LINES_BETWEEN == 0)
                        r = checkpoint(e);
                if (p->n == n_allocated) {
                        const size_t room = n_allocated > 0 ? 2 * n_allocated : 65536;
                        struct KernelPlaceEntry *list = reallocarray(p->list, room, sizeof(*list));

                        if (!list)
                                return error_origin(-ENOMEM);
                        p->list = list;
                        n_allocated = room;
                }
                p->n += parse_line(p->text, line, &p->list[p->n]);
        }
        return r;
}

int kernel_places_read(const char *path, KernelPlaces *ret, Explanation *e) {
        KernelPlaces p = KERNEL_PLACES_NULL;
        size_t length = 0;
        int r = kernel_symbols_read(path, &p.text, &length, e);

        if (r == 0 && length > TEXT_MAX)
                r = KERNEL_SYMBOLS_E_HIDDEN;
        if (r == 0)
                r = parse(&p, length, e);
        if (r == 0 && p.n == 0)
                r = KERNEL_SYMBOLS_E_HIDDEN;
        if (r != 0) {
                kernel_places_deinit(&p);
                return r;
        }
        sort(&p);
        *ret = p;
        return 0;
}

void kernel_places_deinit(KernelPlaces *p) {
        free(p->text);
        free(p->list);
        *p = KERNEL_PLACES_NULL;
}

static void take_names(const char *at, KernelPlace *ret) {
        ret->symbol = at;
        ret->symbol_length = strcspn(at, "\t \n");
        at += ret->symbol_length;
        at += strspn(at, "\t ");
        ret->module = "";
        ret->module_length = 0;
        if (*at == '[') {
                ret->module = at + 1;
                ret->module_length = strcspn(at + 1, "]\n");
        }
}

bool kernel_places_find(const KernelPlaces *p, uint64_t address, KernelPlace *ret) {
        const struct KernelPlaceEntry *entry;
        size_t low = 0, high = p->n;

        while (low < high) { /* the first behind the address */
                const size_t middle = low + (high - low) / 2;

                if (p->list[middle].address <= address)
                        low = middle + 1;
                else
                        high = middle;
        }
        if (low == 0)
                return false;
        entry = &p->list[low - 1];
        if (!entry->is_text || address - entry->address >= FUNCTION_MAX)
                return false;
        ret->offset = address - entry->address;
        ret->size = low < p->n ? p->list[low].address - entry->address : 0;
        take_names(p->text + entry->name, ret);
        return true;
}
