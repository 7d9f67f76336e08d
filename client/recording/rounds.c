/*
 * perf reads all rings once in a round, and writes FINISHED_ROUND behind it. What a ring got while the round before was read may still be
 * older than what that round had of another ring, but all that is older than the latest of that round has been read one round later. perf
 * relies on it; a file is asked before we do. Source: process_finished_round() of perf.
 */
#include <errno.h>

#include "client/recording/memory.h"
#include "client/recording/next.h"
#include "client/recording/rounds.h"
#include "client/recording/sample.h"
#include "client/recording/stored.h"

#define N_SKIMMED 256 /* samples */

typedef struct Rounds {
        uint64_t safe, latest, latest_before, n; /* ns; rounds */
        bool is_sorted, keep;
} Rounds;

static void take_time(Rounds *o, uint64_t time, bool is_state) {
        o->is_sorted &= time > o->latest || (time == o->latest && !is_state);
        o->keep &= time >= o->safe;
        o->latest = time > o->latest ? time : o->latest;
}

static void take(Rounds *o, const perfd_recording *r, const perfd_recorded *record) {
        const uint64_t time = recording_time(r, record);

        if (record->type == PERF_DATA_FINISHED_ROUND) {
                o->safe = o->latest_before;
                o->latest_before = o->latest;
                o->n++;
        } else if (time > 0)
                take_time(o, time, record_is_state(record->type));
}

static int check(perfd_recording *r, bool *ret_is_sorted, bool *ret_keep) {
        Rounds o = { .is_sorted = true, .keep = true };
        int code = 0;

        while (code == 0 && (o.is_sorted || o.keep)) {
                Entry skimmed[N_SKIMMED];
                const size_t n = recording_skim(r, skimmed, N_SKIMMED);
                const perfd_recorded *record;

                for (size_t i = 0; i < n; i++)
                        take_time(&o, skimmed[i].time, false);
                if (n == 0 && (code = recording_read(r, &record)) == 0)
                        take(&o, r, record);
        }
        *ret_is_sorted = o.is_sorted;
        *ret_keep = o.keep && o.n > 0;
        return code == PERFD_E_ENDED ? 0 : code;
}

int rounds_check(const perfd_recording *r, bool *ret_is_sorted, bool *ret_keep) {
        perfd_recording *again = perfd_recording_new();
        int code = again ? 0 : -ENOMEM;

        *ret_is_sorted = *ret_keep = false;
        if (code == 0)
                code = r->source.fd < 0 ? perfd_recording_open_bytes(again, r->source.memory, (size_t)r->source.size) :
                                          perfd_recording_open_fd(again, r->source.fd);
        if (code == 0)
                code = check(again, ret_is_sorted, ret_keep);
        perfd_recording_free(again);
        if (code != 0)
                *ret_is_sorted = *ret_keep = false;
        return code < 0 ? code : 0; /* what has become of a file meanwhile, whoever reads on is told */
}
