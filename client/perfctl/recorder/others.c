/* One bit says of each process whether it is recorded; records of the others are kept as those of a rotation are. */
#include "client/perfctl/recorder/others.h"

#include <stdlib.h>

#include "client/perfctl/base/memory.h"

#define PIDS ((uint32_t)1 << 22) /* PID_MAX_LIMIT of Linux: what is larger is no process, and none of the others */

struct Others {
        RecorderState *state;
        uint64_t recorded[PIDS / 64]; /* pages that are not touched take no memory */
};

Others *others_new(void) {
        Others *o = must_have(calloc(1, sizeof(*o)));

        o->state = recorder_state_new();
        return o;
}

Others *others_free(Others *o) {
        if (o)
                recorder_state_free(o->state);
        free(o);
        return NULL;
}

static bool is_recorded(const Others *o, uint32_t pid) {
        return pid >= PIDS || (o->recorded[pid / 64] >> pid % 64 & 1) != 0;
}

bool others_add_recorded(Others *o, uint32_t pid) {
        if (is_recorded(o, pid))
                return false;
        o->recorded[pid / 64] |= UINT64_C(1) << pid % 64;
        return true;
}

bool others_has(const Others *o, uint32_t pid) {
        return !is_recorded(o, pid);
}

bool others_has_child(Others *o, uint32_t pid, uint32_t ppid) {
        if (is_recorded(o, ppid))
                (void)others_add_recorded(o, pid);
        else if (pid < PIDS)
                o->recorded[pid / 64] &= ~(UINT64_C(1) << pid % 64);
        return !is_recorded(o, pid);
}

void others_take(Others *o, uint32_t type, uint16_t misc, const void *bytes, size_t n) {
        recorder_state_take(o->state, type, misc, bytes, n);
}

int others_give(Others *o, uint32_t pid, RecorderStatePut *put, void *userdata) {
        return others_add_recorded(o, pid) ? recorder_state_give(o->state, pid, put, userdata) : 0;
}
