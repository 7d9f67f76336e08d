/* A message of a relay as rows, which are all of a foreign program's making: the sums are done again. */
#include <errno.h>
#include <stdlib.h>

#include "client/result/result.h"

#define STATUS_BYTES_MAX ((size_t)1 << 20)

static int add_clock(perfd_result *result, const Perfd__V1__WallReading *m, const perfd_wall_reading **ret) {
        perfd_wall_reading *clock;

        *ret = NULL;
        if (!m)
                return 0;
        clock = arena_push(&result->arena, 1, sizeof(*clock));
        if (!clock)
                return -ENOMEM;
        *clock = (perfd_wall_reading){
                .time = m->time,
                .wall = m->wall,
                .error = m->error,
                .since = m->since,
                .host_error = m->host_error,
                .synchronized = m->synchronized,
        };
        *ret = clock;
        return 0;
}

static int add_relay(perfd_result *result, const Perfd__V1__RelayStatus *m) {
        perfd_relay_status *row = arena_push(&result->arena, 1, sizeof(*row));

        if (!row)
                return -ENOMEM;
        *row = (perfd_relay_status){
                .host = m->host,
                .machine = m->machine,
                .boot = m->boot,
                .relay = m->relay,
                .perfd = m->perfd,
                .reason = m->reason,
                .start = m->start,
                .wall = m->wall,
                .held_bytes = m->held_bytes,
                .spool_bytes = m->spool_bytes,
                .published = m->published,
                .messages = m->messages,
                .bytes = m->bytes,
                .n_lost = m->n_lost,
        };
        result->relay_status = row;
        if (result_counts_new(&result->arena, m->lost, m->n_lost, &row->lost) < 0)
                return -ENOMEM;
        return add_clock(result, m->clock, &row->clock);
}

/* An overflow is no balance. */
static bool is_balanced(const perfd_route_status *row) {
        uint64_t sum;
        bool is_over = __builtin_add_overflow(row->published, row->held, &sum);

        for (size_t i = 0; i < row->n_lost; i++)
                is_over |= __builtin_add_overflow(sum, row->lost[i].count, &sum);
        return !is_over && sum == row->matched;
}

static int add_routes(perfd_result *result, const Perfd__V1__RelayStatus *m) {
        perfd_route_status *rows = arena_push(&result->arena, m->n_routes, sizeof(*rows));

        if (!rows)
                return -ENOMEM;
        for (size_t i = 0; i < m->n_routes; i++) {
                const Perfd__V1__RouteStatus *r = m->routes[i];

                rows[i] = (perfd_route_status){
                        .name = r->name,
                        .events = r->events,
                        .n_events = r->n_events,
                        .where = r->where,
                        .connected = r->connected,
                        .since = r->since,
                        .text = r->text,
                        .epoch = r->epoch,
                        .sequence = r->sequence,
                        .matched = r->matched,
                        .n_lost = r->n_lost,
                        .published = r->published,
                        .held = r->held,
                        .stored = r->stored,
                        .stored_matched = r->stored_matched,
                        .ended = r->ended,
                };
                if (result_counts_new(&result->arena, r->lost, r->n_lost, &rows[i].lost) < 0)
                        return -ENOMEM;
                rows[i].balanced = is_balanced(&rows[i]);
        }
        result->route_statuses = rows;
        result->n_route_statuses = m->n_routes;
        return 0;
}

int perfd_relay_status_read(const void *message, size_t length, perfd_result **ret_result) {
        perfd_result *result;
        Perfd__V1__Packet *packet;

        if (length > STATUS_BYTES_MAX)
                return PERFD_E_PROTOCOL;
        packet = perfd__v1__packet__unpack(NULL, length, message);
        if (!packet || !packet->relay) {
                if (packet)
                        perfd__v1__packet__free_unpacked(packet, NULL);
                return PERFD_E_PROTOCOL;
        }
        result = calloc(1, sizeof(*result));
        if (!result) {
                perfd__v1__packet__free_unpacked(packet, NULL);
                return -ENOMEM;
        }
        result->packet = packet;
        if (add_relay(result, packet->relay) < 0 || add_routes(result, packet->relay) < 0) {
                perfd_result_free(result);
                return -ENOMEM;
        }
        *ret_result = result;
        return 0;
}

const perfd_relay_status *perfd_result_relay_status(const perfd_result *result) {
        return result->relay_status;
}

const perfd_route_status *perfd_result_route_status(const perfd_result *result, size_t i) {
        return i < result->n_route_statuses ? &result->route_statuses[i] : NULL;
}
