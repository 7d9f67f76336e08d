/* What there is: all events of all PMUs, and single facts of one. */
#include "daemon/kernel/pmu/pmu.h"

#include "daemon/base/array.h"
#include "config/text/words.h"
#include "daemon/base/cleanup.h"
#include "daemon/kernel/pmu/sysfs.h"
#include "daemon/kernel/pmu/terms.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct PmuList {
        PmuListed *items;
        size_t n;
} PmuList;

void pmu_listed_free(PmuListed *list, size_t n) {
        for (size_t i = 0; i < n; i++) {
                free(list[i].event);
                free(list[i].unit);
                free(list[i].help);
        }
        free(list);
}

static int add_event(const char *root, const char *pmu, const char *event, PmuList *list) {
        _cleanup_free_ char *file = NULL;
        PmuListed one = { .event = NULL };
        int r;

        if (!ARRAY_ROOM(list->items, list->n) || asprintf(&file, "%s.unit", event) < 0)
                return error_origin(-ENOMEM);
        r = pmu_sysfs_read(root, pmu, "events", event, &one.help, NULL);
        if (r == 0)
                r = pmu_sysfs_read(root, pmu, "events", file, &one.unit, NULL);
        if (r == 0 && asprintf(&one.event, "%s/%s/", pmu, event) < 0) {
                one.event = NULL;
                r = error_origin(-ENOMEM);
        }
        if (r == 0 && ((!one.help && !(one.help = strdup(""))) || (!one.unit && !(one.unit = strdup("")))))
                r = error_origin(-ENOMEM);
        list->items[list->n++] = one;
        return r;
}

int pmu_list(const char *root, PmuListed **ret, size_t *ret_n) {
        _cleanup_(strings_deinitp) Strings pmus = STRINGS_NULL;
        PmuList list = { .n = 0 };
        int r = pmu_sysfs_pmus(root, &pmus, NULL);

        for (size_t i = 0; i < pmus.n && r == 0; i++) {
                _cleanup_(strings_deinitp) Strings events = STRINGS_NULL;

                r = pmu_sysfs_events(root, pmus.items[i], &events, NULL);
                for (size_t k = 0; k < events.n && r == 0; k++)
                        r = add_event(root, pmus.items[i], events.items[k], &list);
        }
        if (r != 0) {
                pmu_listed_free(list.items, list.n);
                return r;
        }
        *ret = list.items;
        *ret_n = list.n;
        return 0;
}

int pmu_type(const char *root, const char *name, uint32_t *ret, Explanation *e) {
        bool is_pmu = false;
        uint32_t type = 0;
        int r = pmu_sysfs_type(root, name, &is_pmu, &type, e);

        if (r == 0 && !is_pmu)
                r = refuse(e, REFUSED_UNSUPPORTED, "no-pmu", "this kernel has no PMU %s (%s)", QUOTE(name),
                           QUOTE(root));
        if (r == 0)
                *ret = type;
        return r;
}

int pmu_format_bit(const char *root, const char *pmu, const char *term, unsigned *ret_bit, Explanation *e) {
        _cleanup_free_ char *text = NULL;
        PmuFormat format;
        int r = pmu_sysfs_read(root, pmu, "format", term, &text, e);

        if (r != 0)
                return r;
        if (!text || !pmu_format_parse(text, &format) || format.word != 0 || __builtin_popcountll(format.mask) != 1)
                return refuse(e, REFUSED_UNSUPPORTED, "no-pmu", "PMU %s of this kernel has no bit %s", QUOTE(pmu),
                              QUOTE(term));
        *ret_bit = (unsigned)__builtin_ctzll(format.mask);
        return 0;
}
