/* One bit says of each process whether it is recorded; records of the others are kept as those of a rotation are. */
#include "client/perfctl/recorder/others.h"

#include <stdlib.h>

#include "client/perfctl/base/memory.h"
#include "client/perfctl/recorder/pid-set.h"

struct Others {
        RecorderState *state;
        PidSet recorded;
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
        return pid >= PIDS || pid_set_has(&o->recorded, pid); /* what no process can be is none of the others */
}

bool others_add_recorded(Others *o, uint32_t pid) {
        if (is_recorded(o, pid))
                return false;
        pid_set_add(&o->recorded, pid);
        return true;
}

bool others_has(const Others *o, uint32_t pid) {
        return !is_recorded(o, pid);
}

bool others_has_child(Others *o, uint32_t pid, uint32_t ppid) {
        if (is_recorded(o, ppid))
                (void)others_add_recorded(o, pid);
        else
                pid_set_remove(&o->recorded, pid);
        return !is_recorded(o, pid);
}

void others_take(Others *o, uint32_t type, uint16_t misc, const void *bytes, size_t n) {
        recorder_state_take(o->state, type, misc, bytes, n);
}

int others_give(Others *o, uint32_t pid, RecorderStatePut *put, void *userdata) {
        return others_add_recorded(o, pid) ? recorder_state_give(o->state, pid, put, userdata) : 0;
}
