/*
 * perf(1) and the daemon take the same registers of each architecture: all but the segments of x86-64, and the 33 of arm64. A mask is of the
 * event, and a recording says it before the first sample comes.
 */
#include "client/perfctl/recorder/user-stack.h"

#include <linux/perf_event.h>

#if defined(__x86_64__)
#define REGISTERS UINT64_C(0xff0fff)
#elif defined(__aarch64__)
#define REGISTERS ((UINT64_C(1) << 33) - 1)
#else
#define REGISTERS UINT64_C(0) /* the daemon refuses it */
#endif

#define STACK 8192                 /* bytes: the daemon's, unless more are asked for */
#define REST ((size_t)256)         /* bytes of a record: its header, numbers, sizes and what fills them up; less than that */
#define REGISTERS_MAX ((size_t)64)

void user_stack_of_event(perfd_recorded_event *event) {
        event->sample_type |= PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER;
        event->sample_regs_user = REGISTERS;
        event->sample_stack_user = STACK;
}

void user_stack_of_item(const perfd_item *item, perfd_recorded_sample *sample) {
        const perfd_registers *registers = perfd_item_user_registers(item);
        const size_t taken = REST + (REGISTERS_MAX + sample->n_callchain) * sizeof(uint64_t) + sample->raw.length;
        const size_t room = taken < UINT16_MAX ? (UINT16_MAX - taken) / 8 * 8 : 0;

        if (registers && registers->mask == sample->id.event->sample_regs_user)
                sample->registers_user = (perfd_recorded_registers){ .abi = registers->abi, .values = registers->values,
                                                                     .n = registers->n_values };
        sample->stack_user = perfd_item_user_stack(item);
        if (sample->stack_user.length > room)
                sample->stack_user.length = room;
}
