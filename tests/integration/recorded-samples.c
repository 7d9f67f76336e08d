/* usage: recorded-samples FILE: a line for each sample and each end of a task: type, time, event, pid, tid, CPU, period. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "client/perfd.h"

#define EXIT_RECORD 4
#define SAMPLE 9

static int print(perfd_recording *r, const perfd_recorded *record) {
        perfd_recorded_sample s = { .period = 0 };
        int code = record->type == SAMPLE ? perfd_recording_sample(r, record, &s) : perfd_recording_id(r, record, &s.id);

        if (code == 0)
                printf("%s %" PRIu64 " %s %" PRIu32 " %" PRIu32 " %" PRIu32 " %" PRIu64 "\n", perfd_recorded_name(record->type), s.id.time,
                       s.id.event ? s.id.event->name : "-", s.id.pid, s.id.tid, s.id.cpu, s.period);
        return code;
}

int main(int argc, char **argv) {
        perfd_recording *r = perfd_recording_new();
        const perfd_recorded *record;
        int code = argc == 2 && r ? perfd_recording_open(r, argv[1]) : PERFD_E_INVALID;

        while (code == 0 && (code = perfd_recording_next(r, &record)) == 0)
                if (record->type == SAMPLE || record->type == EXIT_RECORD)
                        code = print(r, record);
        if (code != PERFD_E_ENDED || perfd_recording_damage_count(r) > 0)
                fprintf(stderr, "recorded-samples: %s\n", perfd_recording_n_damages(r) > 0 ? perfd_recording_damage(r, 0)->text : perfd_recording_error(r));
        perfd_recording_free(r);
        return code == PERFD_E_ENDED ? 0 : 1;
}
