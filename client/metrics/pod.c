/*
 * "pod<UID>" of the kubelet that makes cgroups itself, "kubepods-burstable-pod<UID>.slice" of one that lets systemd do it, with '_' for
 * '-'. The UID of a static pod is 32 digits.
 */
#include "client/metrics/pod.h"

#include <string.h>

static const char digits[] = "0123456789abcdef";

/* Up to the end of the component, to what a slice's name has behind it, or to a star. */
static bool read_uid(const char *text, char ret[static POD_UID_SIZE]) {
        static const char shape[] = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx";
        size_t n = strspn(text, digits) == 32 ? 32 : sizeof(shape) - 1;
        char uid[POD_UID_SIZE] = "";

        for (size_t i = 0; i < n; i++) {
                bool is_dash = n > 32 && shape[i] == '-';

                if (text[i] == '\0' || !strchr(is_dash ? "-_" : digits, text[i]))
                        return false;
                uid[i] = is_dash ? '-' : text[i];
        }
        if (!strchr("./*:", text[n])) /* or the end */
                return false;
        memcpy(ret, uid, sizeof(uid));
        return true;
}

bool pod_of_cgroup(const char *path, char ret[static POD_UID_SIZE]) {
        bool is_found = false;

        for (const char *at = path; (at = strstr(at, "pod")); at++)
                if (at == path || at[-1] == '/' || at[-1] == '-')
                        is_found = read_uid(at + strlen("pod"), ret) || is_found;
        return is_found;
}
