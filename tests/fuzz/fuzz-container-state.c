/*
 * The files of container runtimes: the first byte says whose, the rest is the text. Whatever it is, it is read to its end or
 * refused with words; what is known of a container is text, and what was known before stays.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/kernel/cgroup/container-state.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

static void must_be(int yes) {
        if (!yes)
                abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length) {
        static const char before[] = "{\"ID\":\"abc\",\"Name\":\"/first\"}";
        KnownContainers known = KNOWN_CONTAINERS_NULL;
        Explanation e = EXPLANATION_NULL;
        int r;

        if (length == 0)
                return 0;
        must_be(container_state_parse(CONTAINER_STORE_DOCKER, NULL, before, sizeof(before) - 1, "/m", &known, NULL) == 0);
        must_be(known.n == 1);
        r = container_state_parse((ContainerStore)(bytes[0] % _CONTAINER_STORE_MAX), "web", (const char *)bytes + 1, length - 1,
                                  "/m", &known, &e);
        must_be(r == 0 || (r == REFUSED_INVALID && e.text[0] && known.n == 1));
        for (size_t i = 0; i < known.n; i++)
                must_be(known.list[i].id[0] && known.list[i].name &&
                        (!known.list[i].cgroup || strncmp(known.list[i].cgroup, "/m/", 3) == 0));
        must_be(strcmp(known.list[0].id, "abc") == 0 && strcmp(known.list[0].name, "first") == 0);
        known_containers_deinit(&known);
        return 0;
}
