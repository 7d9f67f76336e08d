/*
 * perf reads all rings once in a round, and writes FINISHED_ROUND behind it. What a ring got while the round before was read may still be
 * older than what that round had of another ring, but all that is older than the latest of that round has been read one round later. perf
 * relies on it; a file is asked before we do. Source: process_finished_round() of perf.
 */
#include <errno.h>

#include "client/recording/recording.h"

static int check(perfd_recording *r, bool *ret_is_sorted, bool *ret_keep) {
        uint64_t safe = 0, latest = 0, latest_before = 0, n_rounds = 0;
        bool is_sorted = true, keep = true;
        const perfd_recorded *record;
        int code;

        while ((is_sorted || keep) && (code = recording_read(r, &record)) == 0) {
                const uint64_t time = recording_time(r, record);

                if (record->type == PERF_DATA_FINISHED_ROUND) {
                        safe = latest_before;
                        latest_before = latest;
                        n_rounds++;
                } else if (time > 0) {
                        is_sorted = is_sorted && (time > latest || (time == latest && !record_is_state(record->type)));
                        keep = keep && time >= safe;
                        latest = time > latest ? time : latest;
                }
        }
        if ((is_sorted || keep) && code != PERFD_E_ENDED)
                return code;
        *ret_is_sorted = is_sorted;
        *ret_keep = keep && n_rounds > 0;
        return 0;
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
        return code < 0 ? code : 0; /* what has become of a file meanwhile, whoever reads on is told */
}
