/* What is known are functions, from their first byte to the next one, in their order; what has no name is a byte of nothing. */
#include "client/perfctl/names/kernel-names.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KNOWN_MAX ((size_t)1 << 18)     /* functions: more than a kernel has; whoever answers with more is forgotten, and asked again */
#define PATIENCE_MS 10000               /* the stream waits meanwhile */

typedef struct KnownFunction {
        uint64_t start, end; /* where it is known */
        uint64_t begin;      /* of its symbol */
        char *symbol; /* NULL: there is none */
        char *dso;    /* "[ext4]" */
} KnownFunction;

struct KernelNames {
        Perfctl p; /* with a client of its own */
        bool has_failed;
        KnownFunction *list; /* by their starts; they do not overlap */
        size_t n, room;
};

KernelNames *kernel_names_new(const Perfctl *p) {
        KernelNames *k = must_have(calloc(1, sizeof(*k)));

        k->p = *p;
        k->p.client = NULL;
        return k;
}

static void forget(KernelNames *k) {
        for (size_t i = 0; i < k->n; i++) {
                free(k->list[i].symbol);
                free(k->list[i].dso);
        }
        k->n = 0;
}

KernelNames *kernel_names_free(KernelNames *k) {
        if (!k)
                return NULL;
        forget(k);
        free(k->list);
        perfd_client_free(k->p.client);
        free(k);
        return NULL;
}

/* How many begin at the address or before it: the last of these may have it. */
static size_t count_before(const KernelNames *k, uint64_t address) {
        size_t low = 0, high = k->n;

        while (low < high) {
                const size_t middle = low + (high - low) / 2;

                if (k->list[middle].start <= address)
                        low = middle + 1;
                else
                        high = middle;
        }
        return low;
}

static const KnownFunction *find_known(const KernelNames *k, uint64_t address) {
        const size_t n = count_before(k, address);

        return n > 0 && address < k->list[n - 1].end ? &k->list[n - 1] : NULL;
}

/* Between its neighbours, whatever the daemon says of its place. */
static void add_known(KernelNames *k, uint64_t address, const perfd_kernel_name *name) {
        const size_t at = count_before(k, address);
        const uint64_t before = at > 0 ? k->list[at - 1].end : 0, behind = at < k->n ? k->list[at].start : UINT64_MAX;
        KnownFunction new = { .start = address, .end = address < UINT64_MAX ? address + 1 : address };

        if (name->symbol.length > 0 && name->offset <= address) {
                const uint64_t start = address - name->offset, end = start + name->size;

                new.begin = start;
                new.start = start > before ? start : before;
                if (end > address)
                        new.end = end < behind ? end : behind;
                new.symbol = must_have(strndup(name->symbol.bytes, name->symbol.length));
                new.dso = name->module.length == 0 ? must_have(strdup("[kernel.kallsyms]")) : NULL;
                if (!new.dso && asprintf(&new.dso, "[%.*s]", (int)name->module.length, name->module.bytes) < 0)
                        new.dso = must_have(NULL);
        }
        if (k->n == k->room) {
                k->room = k->room ? 2 * k->room : 256;
                k->list = must_have(reallocarray(k->list, k->room, sizeof(*k->list)));
        }
        memmove(&k->list[at + 1], &k->list[at], (k->n - at) * sizeof(*k->list));
        k->list[at] = new;
        k->n++;
}

/* ---- asking ------------------------------------------------------------------------------------------------------------------------ */

static bool has_connected(KernelNames *k) {
        if (k->p.client)
                return true;
        k->has_failed = (k->p.host ? perfctl_connect(&k->p) : perfctl_connect_quietly(&k->p)) != 0;
        if (k->has_failed)
                (void)perfctl_fail(&k->p, PERFCTL_OK, "frames of the kernel have no names: a second connection, which asks for them, failed");
        else
                perfd_client_set_timeout(k->p.client, PATIENCE_MS);
        return !k->has_failed;
}

static void ask(KernelNames *k, const uint64_t *addresses, size_t n) {
        perfd_result *result = NULL;
        const perfd_kernel_name *name;

        if (!has_connected(k))
                return;
        if (perfd_kernel_names(k->p.client, addresses, n, &result) != 0) {
                k->has_failed = true;
                (void)perfctl_fail(&k->p, PERFCTL_OK, "frames of the kernel have no names: %s", perfd_client_error(k->p.client)->message);
                return;
        }
        if (k->n > KNOWN_MAX)
                forget(k);
        for (size_t i = 0; i < n && (name = perfd_result_kernel_name(result, i)); i++)
                if (!find_known(k, addresses[i]))
                        add_known(k, addresses[i], name);
        perfd_result_free(result);
}

void kernel_names_want(KernelNames *k, const uint64_t *addresses, size_t n) {
        uint64_t asked[256];
        size_t n_asked = 0;

        for (size_t i = 0; i < n && !k->has_failed; i++) {
                if (find_known(k, addresses[i]))
                        continue;
                asked[n_asked++] = addresses[i];
                if (n_asked == sizeof(asked) / sizeof(asked[0])) {
                        ask(k, asked, n_asked);
                        n_asked = 0;
                }
        }
        if (n_asked > 0 && !k->has_failed)
                ask(k, asked, n_asked);
}

bool kernel_names_function(KernelNames *k, uint64_t address, KernelFunction *ret) {
        const KnownFunction *known;

        kernel_names_want(k, &address, 1);
        known = find_known(k, address);
        if (!known || !known->symbol)
                return false;
        *ret = (KernelFunction){ .start = known->begin, .end = known->end, .symbol = known->symbol, .dso = known->dso };
        return true;
}

bool kernel_names_find(KernelNames *k, uint64_t address, perfd_frame *frame) {
        KernelFunction f;

        if (!kernel_names_function(k, address, &f))
                return false;
        frame->symbol = (perfd_text){ .bytes = f.symbol, .length = strlen(f.symbol) };
        if (frame->dso.length != strlen(f.dso) || memcmp(frame->dso.bytes, f.dso, frame->dso.length) != 0)
                frame->build_id.length = 0; /* a module's, which the daemon does not say */
        frame->dso = (perfd_text){ .bytes = f.dso, .length = strlen(f.dso) };
        frame->offset = address - f.start;
        frame->note = "";
        return true;
}
