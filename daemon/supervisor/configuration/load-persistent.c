/* The state file at the start: its events (supervisor/changes/persistent.c) are pending, and perfd tries at once to open them. */
#include "daemon/supervisor/configuration/load-persistent.h"

#include <stdio.h>
#include <string.h>

#include "daemon/base/log.h"
#include "daemon/control/control.h"
#include "daemon/kernel/host/state-file.h"
#include "daemon/supervisor/changes/persistent.h"
#include "daemon/supervisor/configuration/retry.h"

/* Renamed, for an administrator to repair, so that the events that become persistent from now on have a file. */
static int give_up_file(Configuration *s, const char *why) {
        _cleanup_free_ char *name = NULL;
        Explanation e = EXPLANATION_NULL;
        int r = state_file_set_aside(s->changes->state_path, &name, &e);

        if (r == 0)
                log_print(LOG_ERR, MESSAGE_PERSISTENT_EVENTS,
                          "no persistent event is added: %s; the file has been renamed to %s", why, name);
        if (r <= 0)
                return r;
        log_print(LOG_ERR, MESSAGE_PERSISTENT_EVENTS, "no persistent event is added, and events cannot be made persistent: %s; "
                "%s", why, e.text);
        s->changes->state_unusable = strdup(why);
        return s->changes->state_unusable ? 0 : error_origin(-ENOMEM);
}

/* Each is pending until it is opened, which is tried at once. */
static int load_file(Configuration *s, const uint8_t *bytes, size_t n) {
        Perfd__V1__AddRequest *q = perfd__v1__add_request__unpack(NULL, n, bytes);
        Perfd__V1__Request request = PERFD__V1__REQUEST__INIT; /* as of a client: what is in it is shown to clients */
        Explanation e = EXPLANATION_NULL, why = EXPLANATION_NULL;
        PendingEvent *list = NULL;
        int r = 0;

        request.body_case = PERFD__V1__REQUEST__BODY_ADD;
        request.add = q;
        if (!q)
                (void)refuse(&e, REFUSED_INVALID, "state-file", "%s contains no list of events", s->changes->state_path);
        else if (request_check_texts(&request, &why) != 0)
                (void)refuse(&e, REFUSED_INVALID, "state-file", "%s is damaged: %s", s->changes->state_path, why.text);
        if (e.text[0]) {
                perfd__v1__add_request__free_unpacked(q, NULL);
                return give_up_file(s, e.text);
        }
        for (size_t i = q->n_events; i > 0 && r == 0; i--) { /* from the end, so that each is put before the others */
                PendingEvent *before = NULL;

                r = pending_new(q->events[i - 1], NULL, NULL, &before);
                if (r == 0) {
                        before->next = list;
                        list = before;
                }
                q->n_events--; /* it is taken */
        }
        perfd__v1__add_request__free_unpacked(q, NULL);
        if (r < 0) {
                pending_free_list(list);
                return r;
        }
        events_set_pending(s->events, list, false);
        r = persistent_drop_configured(s->changes);
        return r == 0 ? configuration_retry_persistent(s) : r;
}

int configuration_load_persistent(Configuration *s) {
        _cleanup_free_ uint8_t *bytes = NULL;
        Explanation e = EXPLANATION_NULL;
        size_t n = 0;
        int r;

        thread_assert(THREAD_MAIN);
        if (s->settings->runtime_directory ? asprintf(&s->changes->state_path, "%s/events", s->settings->runtime_directory) < 0
                                 : !(s->changes->state_path = strdup(s->settings->config->state_path)))
                return error_origin(-ENOMEM);
        r = state_file_read(s->changes->state_path, &bytes, &n, &e);
        if (r == STATE_FILE_E_MISSING)
                return 0;
        if (r == 0)
                return load_file(s, bytes, n);
        if (r == REFUSED_INVALID)
                return give_up_file(s, e.text);
        if (r < 0)
                return r;
        log_print(LOG_ERR, MESSAGE_PERSISTENT_EVENTS,
                  "no persistent event is added, and events cannot be made persistent: %s", e.text);
        s->changes->state_unusable = strdup(e.text);
        return s->changes->state_unusable ? 0 : error_origin(-ENOMEM);
}

void configuration_free_persistent(Configuration *s) {
        free(s->changes->state_path);
        free(s->changes->state_unusable);
}
