/* The one table from the kernel's record types to what a subscriber can ask for. */
#include "daemon/model/record.h"

#include <linux/perf_event.h>

#include "daemon/base/cleanup.h"

/* Side records that belong to an event and say what it lost: whoever has the event gets them. */
#define UNASKED _RECORD_KIND_MAX

unsigned record_kind_of(uint32_t type) {
        static const uint8_t kinds[] = {
                [0] = RECORD_KIND_UNKNOWN,
                [PERF_RECORD_MMAP] = RECORD_KIND_MMAP2,
                [PERF_RECORD_LOST] = UNASKED,
                [PERF_RECORD_COMM] = RECORD_KIND_COMM,
                [PERF_RECORD_EXIT] = RECORD_KIND_EXIT,
                [PERF_RECORD_THROTTLE] = UNASKED,
                [PERF_RECORD_UNTHROTTLE] = UNASKED,
                [PERF_RECORD_FORK] = RECORD_KIND_FORK,
                [PERF_RECORD_READ] = RECORD_KIND_READ,
                [PERF_RECORD_SAMPLE] = UNASKED,
                [PERF_RECORD_MMAP2] = RECORD_KIND_MMAP2,
                [PERF_RECORD_AUX] = RECORD_KIND_AUX,
                [PERF_RECORD_ITRACE_START] = RECORD_KIND_ITRACE_START,
                [PERF_RECORD_LOST_SAMPLES] = UNASKED,
                [PERF_RECORD_SWITCH] = RECORD_KIND_SWITCH,
                [PERF_RECORD_SWITCH_CPU_WIDE] = RECORD_KIND_SWITCH,
                [PERF_RECORD_NAMESPACES] = RECORD_KIND_NAMESPACES,
                [PERF_RECORD_KSYMBOL] = RECORD_KIND_KSYMBOL,
                [PERF_RECORD_BPF_EVENT] = RECORD_KIND_BPF_EVENT,
                [PERF_RECORD_CGROUP] = RECORD_KIND_CGROUP,
                [PERF_RECORD_TEXT_POKE] = RECORD_KIND_TEXT_POKE,
                [PERF_RECORD_AUX_OUTPUT_HW_ID] = RECORD_KIND_AUX_OUTPUT_HW_ID,
        };

        return type < ARRAY_SIZE(kinds) ? kinds[type] : RECORD_KIND_UNKNOWN;
}
