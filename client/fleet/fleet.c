#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/fleet/fleet.h"
#include "client/request/request.h"
#include "client/stream/batch.h"

int perfd_fleet_new(const perfd_fleet_options *options, const perfd_fleet_callbacks *callbacks, void *userdata, perfd_fleet **ret) {
        perfd_fleet_options o = PERFD_FLEET_OPTIONS_INIT;
        perfd_fleet_callbacks c;
        perfd_fleet *f;

        if (options && caller_struct_copy(&o, sizeof(o), options) != 0)
                return PERFD_E_INVALID;
        if (!callbacks || caller_struct_copy(&c, sizeof(c), callbacks) != 0 || (c.item && c.batch))
                return PERFD_E_INVALID;
        f = calloc(1, sizeof(*f));
        if (f && c.batch)
                f->batch = batch_new(NULL);
        if (!f || (c.batch && !f->batch)) {
                free(f);
                return -ENOMEM;
        }
        f->options = o;
        f->options.max_streams = o.max_streams > 0 ? o.max_streams : FLEET_STREAMS_DEFAULT;
        f->callbacks = c;
        f->userdata = userdata;
        (void)snprintf(f->missing, sizeof(f->missing), "%s", o.missing ? o.missing : "missing");
        *ret = f;
        return 0;
}

void perfd_fleet_free(perfd_fleet *f) {
        if (!f)
                return;
        for (size_t i = 0; i < f->n; i++)
                fleet_stream_free(f->streams[i]);
        free(f->streams);
        known_descriptors_deinit(&f->known);
        batch_free(f->batch);
        free(f);
}

/* The caller's image of it, as far as it is one. */
static int message_copy(perfd_fleet_message *to, const perfd_fleet_message *from) {
        if (!from || caller_struct_copy(to, sizeof(*to), from) != 0 || !to->subject || !to->header || (!to->bytes && to->length > 0))
                return PERFD_E_INVALID;
        if (!to->bytes)
                to->bytes = "";
        return 0;
}

static void count(perfd_fleet *f, const perfd_fleet_message *m) {
        f->counts.messages++;
        f->counts.bytes += m->length;
}

static void refuse(perfd_fleet *f, const perfd_fleet_message *m, uint64_t *counter, const char *why) {
        count(f, m);
        ++*counter;
        if (f->callbacks.refused)
                f->callbacks.refused(f->userdata, NULL, why);
}

/* 0: there is one. */
static int find_or_new(perfd_fleet *f, const FleetHead *h, bool has_come, FleetStream **ret) {
        int r;

        *ret = fleet_stream_find(f, h);
        if (*ret)
                return 0;
        r = fleet_stream_new(f, h, has_come, ret);
        if (r == 0 && f->callbacks.begin)
                f->callbacks.begin(f->userdata, &(*ret)->row);
        return r;
}

static int take(perfd_fleet *f, const perfd_fleet_message *m) {
        FleetHead head = { .epoch = 0 };
        const char *why = fleet_head_read(m, &head);
        FleetStream *s;
        int r;

        if (fleet_is_status(m->subject)) {
                count(f, m);
                return 0;
        }
        if (why) {
                refuse(f, m, &f->counts.foreign, why);
                return 0;
        }
        if (f->n >= f->options.max_streams && !fleet_stream_find(f, &head)) {
                refuse(f, m, &f->counts.refused, "there are more streams than are read");
                return 0;
        }
        r = find_or_new(f, &head, true, &s);
        if (r == 0 && fleet_stream_needs(s, &head))
                return PERFD_E_NEEDED;
        if (r == 0)
                count(f, m);
        return r == 0 ? fleet_stream_take(s, &head, m) : r;
}

int perfd_fleet_take(perfd_fleet *f, const perfd_fleet_message *message) {
        perfd_fleet_message m;
        int r;

        if (f->is_busy)
                return PERFD_E_STATE;
        if (message_copy(&m, message) != 0)
                return PERFD_E_INVALID;
        f->is_busy = true;
        r = take(f, &m);
        f->is_busy = false;
        return r;
}

const char *perfd_fleet_needed(const perfd_fleet *f) {
        return f->known.wanted[0] ? f->known.subject : NULL;
}

int perfd_fleet_describe(perfd_fleet *f, const perfd_fleet_message *message) {
        perfd_fleet_message m;

        if (f->is_busy || !f->known.wanted[0])
                return PERFD_E_STATE;
        if (message && message_copy(&m, message) != 0)
                return PERFD_E_INVALID;
        return known_descriptors_take(&f->known, message ? &m : NULL);
}

const perfd_fleet_stream *perfd_fleet_get_stream(const perfd_fleet *f, size_t i) {
        return i < f->n ? &f->streams[i]->row : NULL;
}

const perfd_fleet_counts *perfd_fleet_get_counts(const perfd_fleet *f) {
        return &f->counts;
}

static bool word_read(const char *from, char to[FLEET_WORD_SIZE]) {
        return from && fleet_word_read(from, strnlen(from, FLEET_WORD_SIZE), to);
}

static int reckon(perfd_fleet *f, const perfd_fleet_reckoning *known) {
        FleetHead head = { .epoch = known->epoch };
        FleetStream *s;
        int r;

        if (!word_read(known->host, head.host) || !word_read(known->route, head.route) || !word_read(known->machine, head.machine) ||
            !word_read(known->boot, head.boot) || known->sequence == 0 || known->sequence == UINT64_MAX)
                return PERFD_E_INVALID;
        if (f->n >= f->options.max_streams && !fleet_stream_find(f, &head))
                return PERFD_E_INVALID;
        r = find_or_new(f, &head, false, &s);
        if (r == 0 && !fleet_stream_reckon(s, known))
                return PERFD_E_INVALID;
        return r;
}

int perfd_fleet_reckon(perfd_fleet *f, const perfd_fleet_reckoning *reckoning) {
        perfd_fleet_reckoning known;
        int r;

        if (f->is_busy)
                return PERFD_E_STATE;
        if (!reckoning || caller_struct_copy(&known, sizeof(known), reckoning) != 0)
                return PERFD_E_INVALID;
        f->is_busy = true;
        r = reckon(f, &known);
        f->is_busy = false;
        return r;
}

int perfd_fleet_forget(perfd_fleet *f, const perfd_fleet_stream *stream) {
        size_t i = 0;

        if (f->is_busy)
                return PERFD_E_STATE;
        while (&f->streams[i]->row != stream)
                i++;
        fleet_stream_free(f->streams[i]);
        memmove(&f->streams[i], &f->streams[i + 1], (f->n - i - 1) * sizeof(FleetStream *));
        f->n--;
        return 0;
}

uint64_t perfd_fleet_wall(const perfd_fleet_stream *stream, uint64_t time, uint64_t *ret_error) {
        const FleetStream *s = (const FleetStream *)stream;
        uint64_t error;

        if (s->client)
                return wall_times_at(&s->client->stream->wall, time, ret_error ? ret_error : &error);
        if (ret_error)
                *ret_error = UINT64_MAX;
        return time + (uint64_t)stream->wall_offset;
}
