/* Any bytes as the kernel's message: an event only if they begin like one, and then of a CPU that Linux can have. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/cpu-list.h"
#include "daemon/kernel/host/hotplug.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length) {
        char expected[64];
        uint32_t cpu = UINT32_MAX;
        bool online = false;
        int r = hotplug_parse((const char *)bytes, length, &cpu, &online);

        if (r != 0 && r != HOTPLUG_E_NONE)
                abort();
        if (r != 0)
                return 0;
        if (cpu > CPU_LIST_MAX_CPU)
                abort();
        (void)snprintf(expected, sizeof(expected), "%s@/devices/system/cpu/cpu%u", online ? "online" : "offline", cpu);
        if (length < strlen(expected) + 1 || strcmp((const char *)bytes, expected) != 0)
                abort();
        return 0;
}
