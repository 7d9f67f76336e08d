/*
 * Which PMUs a name means. Many of one kind (a memory controller has one for each channel) are one to their user, as in
 * perf.
 */
#include "daemon/kernel/pmu/sysfs.h"

#include "config/text/words.h"
#include "daemon/base/cleanup.h"

#include <fnmatch.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>

#define UNCORE "uncore_"

/* "_0", "_17", or "_3f8" as the kernel numbers by address. */
static bool is_number_suffix(const char *s) {
        size_t n;

        if (*s++ != '_')
                return false;
        n = strlen(s);
        return n > 0 && (strspn(s, "0123456789") == n || (n > 2 && strspn(s, "0123456789abcdef") == n));
}

static bool name_fits(const char *pmu, const char *wanted) {
        size_t n = strlen(wanted);

        if (fnmatch(wanted, pmu, 0) == 0 || (strncmp(pmu, wanted, n) == 0 && is_number_suffix(pmu + n)))
                return true;
        return strncmp(pmu, UNCORE, strlen(UNCORE)) == 0 && name_fits(pmu + strlen(UNCORE), wanted);
}

int pmu_sysfs_type(const char *root, const char *pmu, bool *ret_is_pmu, uint32_t *ret, Explanation *e) {
        _cleanup_free_ char *text = NULL;
        unsigned long type = 0;
        char *end;
        int r = pmu_sysfs_read(root, pmu, NULL, "type", &text, e);

        if (r != 0)
                return r;
        if (text) {
                type = strtoul(text, &end, 10);
                if (end == text || *end || type > UINT32_MAX)
                        return refuse(e, REFUSED_UNSUPPORTED, "bad-pmu", "the type of PMU %s is %s, which is not a number",
                                      QUOTE(pmu), QUOTE(text));
        }
        *ret_is_pmu = text != NULL;
        *ret = (uint32_t)type;
        return 0;
}

/* What is no PMU has no type: the folder "power" of a device, say. */
int pmu_sysfs_pmus(const char *root, Strings *ret, Explanation *e) {
        _cleanup_(strings_deinitp) Strings all = STRINGS_NULL, pmus = STRINGS_NULL;
        int r = pmu_sysfs_list(root, NULL, NULL, &all, e);

        for (size_t i = 0; i < all.n && r == 0; i++) {
                bool is_pmu = false;
                uint32_t type;

                r = pmu_sysfs_type(root, all.items[i], &is_pmu, &type, e);
                if (r == 0 && is_pmu)
                        r = strings_add(&pmus, all.items[i]);
        }
        if (r != 0)
                return r;
        *ret = pmus;
        pmus = STRINGS_NULL;
        return 0;
}

/* As perf's is_pmu_core(): "cpu", the one with the raw type, or all that have a file "cpus". */
int pmu_sysfs_core(const char *root, const Strings *pmus, Strings *ret, Explanation *e) {
        _cleanup_(strings_deinitp) Strings core = STRINGS_NULL;
        int r = 0;

        for (size_t i = 0; i < pmus->n && r == 0; i++) {
                _cleanup_free_ char *cpus = NULL;
                bool is_pmu = false;
                uint32_t type = 0;

                r = pmu_sysfs_type(root, pmus->items[i], &is_pmu, &type, e);
                if (r == 0)
                        r = pmu_sysfs_read(root, pmus->items[i], NULL, "cpus", &cpus, e);
                if (r == 0 && strcmp(pmus->items[i], "cpu") == 0) { /* there is no other beside it */
                        strings_deinit(&core);
                        r = strings_add(&core, pmus->items[i]);
                        break;
                }
                if (r == 0 && (cpus || type == PERF_TYPE_RAW))
                        r = strings_add(&core, pmus->items[i]);
        }
        if (r != 0)
                return r;
        *ret = core;
        core = STRINGS_NULL;
        return 0;
}

int pmu_sysfs_find(const char *root, const char *name, Strings *ret, Explanation *e) {
        _cleanup_(strings_deinitp) Strings all = STRINGS_NULL, found = STRINGS_NULL;
        Nearest nearest = NEAREST_NULL;
        bool is_exact = false;
        int r = pmu_sysfs_pmus(root, &all, e);

        for (size_t i = 0; i < all.n; i++)
                is_exact = is_exact || strcmp(all.items[i], name) == 0;
        for (size_t i = 0; i < all.n && r == 0; i++) {
                nearest_add(&nearest, name, all.items[i]);
                if (is_exact ? strcmp(all.items[i], name) == 0 : name_fits(all.items[i], name))
                        r = strings_add(&found, all.items[i]);
        }
        if (r == 0 && found.n == 0 && strcmp(name, "cpu") == 0)
                r = pmu_sysfs_core(root, &all, &found, e);
        if (r == 0 && found.n == 0)
                r = refuse(e, REFUSED_NOT_FOUND, "unknown-pmu", "this machine has no PMU %s%s", QUOTE(name),
                           HINT(&nearest));
        if (r != 0)
                return r;
        *ret = found;
        found = STRINGS_NULL;
        return 0;
}

