/* For `count`: what is written for a column, or for what a histogram is of. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* What every sample has, or is absent; beside it an event has fields. */
typedef enum KeyPart {
        KEY_COMM,
        KEY_PID,
        KEY_TID,
        KEY_CPU,
        KEY_EVENT,
        KEY_EXE,
        KEY_UID,
        KEY_CGROUP,
        KEY_CONTAINER,
        KEY_UNIT,
        KEY_IP,
        KEY_ADDR,
        KEY_PERIOD,
        _KEY_PART_MAX,
        KEY_NONE = -1,
} KeyPart;

/* What is written for a value: "id", "args[2]", "comm", "sample.comm". */
typedef struct KeyName {
        const char *text;
        char *field;     /* the field that is meant where an event has it, as perfd-filter(7) says; NULL: "sample.comm" is none */
        int64_t element; /* of an array; -1: none was named */
        KeyPart part;
} KeyName;

#define KEY_PARTS "comm, pid, tid, cpu, event, exe, uid, cgroup, container, unit, ip, addr, period"

/* False: it can be no name. */
bool key_name_init(KeyName *name, const char *text);
void key_name_deinit(KeyName *name);
/* "comm" of KEY_COMM */
const char *key_part_name(KeyPart part);
