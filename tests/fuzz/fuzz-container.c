/*
 * Any path of a cgroup: what is said of it is made of the path's own bytes, terminated, and in the shape that the header
 * promises. The same path with a folder behind it that says nothing has the same container and pod.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/model/container.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

static void must_be(int yes) {
        if (!yes)
                abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length) {
        char *path = malloc(length + sizeof("/-"));
        ContainerName name, inner;
        bool inner_has_meaning;

        must_be(path != NULL);
        memcpy(path, bytes, length);
        path[length] = '\0';
        container_name_of(path, &name);
        must_be(memchr(name.id, '\0', sizeof(name.id)) && memchr(name.unit, '\0', sizeof(name.unit)));
        must_be(!name.runtime || name.id[0]);
        must_be(strlen(name.pod_uid) == 0 || strlen(name.pod_uid) == 32 || strlen(name.pod_uid) == 36);
        must_be(strspn(name.pod_uid, "0123456789abcdef-") == strlen(name.pod_uid));
        must_be(strstr(path, name.unit) != NULL && !strchr(name.id, '/') && !strchr(name.unit, '/'));
        if (strcmp(name.runtime ? name.runtime : "", "systemd-nspawn") != 0 && !strchr(name.id, '-'))
                must_be(strstr(path, name.id) != NULL);

        inner_has_meaning = strstr(path, "lxc") != NULL || strstr(path, " (deleted)") != NULL;
        if (!inner_has_meaning) {
                strcat(path, "/-");
                container_name_of(path, &inner);
                must_be(strcmp(name.id, inner.id) == 0 && name.runtime == inner.runtime);
                must_be(strcmp(name.pod_uid, inner.pod_uid) == 0 && strcmp(name.unit, inner.unit) == 0);
        }
        free(path);
        return 0;
}
