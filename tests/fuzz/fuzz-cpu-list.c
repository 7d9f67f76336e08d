/*
 * Lists of CPUs, as sysfs has them and as users write them: both parsers agree on what is one that a user may write, the CPUs rise, and the list
 * that is written of them has the same ones.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/text/text.h"
#include "config/value.h"
#include "daemon/base/cleanup.h"
#include "daemon/base/cpu-list.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

static void must_be(int yes) {
        if (!yes)
                abort();
}

static char *write_list(const uint32_t *cpus, size_t n) {
        char *text = NULL;
        size_t size;
        FILE *f = open_memstream(&text, &size);

        must_be(f != NULL);
        for (size_t i = 0, last; i < n; i = last + 1) {
                for (last = i; last + 1 < n && cpus[last + 1] == cpus[last] + 1;)
                        last++;
                fprintf(f, i ? ",%u" : "%u", cpus[i]);
                if (last > i)
                        fprintf(f, "-%u", cpus[last]);
        }
        must_be(fclose(f) == 0);
        return text;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length) {
        _cleanup_free_ char *text = strndup((const char *)bytes, length), *written = NULL, *kept = NULL;
        _cleanup_free_ uint32_t *cpus = NULL, *again = NULL;
        size_t n = 0, n_again = 0;
        Explanation e;
        int r, config;

        must_be(text != NULL);
        r = cpu_list_parse(text, &cpus, &n, &e);
        must_be(r == 0 || (r == REFUSED_INVALID && !cpus && e.position >= 1 && e.position <= strlen(text) + 1));
        config = value_decode_to("targets.NAME.cpus", text, &kept, &e);
        must_be(config == 0 || (config == REFUSED_INVALID && !kept && e.position >= 1));
        if (strchr(text, '\n') == NULL) /* which only sysfs has behind its list */
                must_be((r == 0 && strlen(text) <= TEXT_MAX) == (config == 0)); /* sysfs' may be longer */
        if (r != 0)
                return 0;
        must_be(n > 0 && cpus[n - 1] <= CPU_LIST_MAX_CPU);
        for (size_t i = 1; i < n; i++)
                must_be(cpus[i] > cpus[i - 1]);
        written = write_list(cpus, n);
        must_be(cpu_list_parse(written, &again, &n_again, NULL) == 0);
        must_be(n == n_again && memcmp(cpus, again, n * sizeof(*cpus)) == 0);
        return 0;
}
