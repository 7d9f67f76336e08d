/* What a relay has said of itself, as rows, and what that means some time later. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "client/perfctl/fleet/relays.h"
#include "proto/perfd.pb-c.h"

#define SECOND UINT64_C(1000000000)

typedef struct Said {
        const char *boot, *reason;
        uint64_t start, wall;
        bool connected;
        uint64_t matched, published;
} Said;

static uint8_t *pack(const Said *said, size_t *ret_length) {
        Perfd__V1__Packet packet = PERFD__V1__PACKET__INIT;
        Perfd__V1__RelayStatus relay = PERFD__V1__RELAY_STATUS__INIT;
        Perfd__V1__RouteStatus route = PERFD__V1__ROUTE_STATUS__INIT, *routes[] = { &route };
        Perfd__V1__Count outbox = PERFD__V1__COUNT__INIT, *lost[] = { &outbox };
        uint8_t *bytes;

        relay.host = (char *)"web1";
        relay.machine = (char *)"m";
        relay.boot = (char *)said->boot;
        relay.reason = (char *)said->reason;
        relay.start = said->start;
        relay.wall = said->wall;
        outbox.reason = (char *)"outbox";
        outbox.count = 3;
        route.name = (char *)"calls";
        route.connected = said->connected;
        route.matched = said->matched;
        route.published = said->published;
        route.held = 2;
        route.lost = relay.lost = lost;
        route.n_lost = relay.n_lost = 1;
        relay.routes = routes;
        relay.n_routes = 1;
        packet.relay = &relay;
        bytes = malloc(perfd__v1__packet__get_packed_size(&packet));
        assert_non_null(bytes);
        *ret_length = perfd__v1__packet__pack(&packet, bytes);
        return bytes;
}

static FleetRelay relay_of(const Said *said) {
        FleetRelay r = { .about = { .host = "web1", .machine = "m", .stored = said->wall } };
        size_t length;
        uint8_t *bytes = pack(said, &length);

        assert_int_equal(perfd_relay_status_read(bytes, length, &r.result), 0);
        free(bytes);
        r.status = perfd_result_relay_status(r.result);
        return r;
}

static void test_rows(void **state) {
        const Said said = { .boot = "b", .reason = "interval", .start = 1, .wall = 2, .connected = true, .matched = 12, .published = 7 };
        FleetRelay r = relay_of(&said);
        const perfd_route_status *route = perfd_result_route_status(r.result, 0);

        assert_string_equal(r.status->host, "web1");
        assert_string_equal(r.status->perfd, "");
        assert_null(r.status->clock);
        assert_int_equal(fleet_relay_lost(&r), 3);
        assert_string_equal(route->name, "calls");
        assert_true(route->balanced);
        assert_null(perfd_result_route_status(r.result, 1));
        perfd_result_free(r.result);
}

/* Sums that do not close, also by an overflow. */
static void test_unbalanced(void **state) {
        const Said said[] = {
                { .boot = "b", .reason = "end", .matched = 11, .published = 7 },
                { .boot = "b", .reason = "end", .matched = 4, .published = UINT64_MAX },
        };

        for (size_t i = 0; i < sizeof(said) / sizeof(said[0]); i++) {
                FleetRelay r = relay_of(&said[i]);

                assert_false(perfd_result_route_status(r.result, 0)->balanced);
                perfd_result_free(r.result);
        }
}

/* Every truncation is none, or one with what is left; never anything else is read. */
static void test_foreign_bytes(void **state) {
        const Said said = { .boot = "b", .reason = "end" };
        perfd_result *result = NULL;
        size_t length;
        uint8_t *bytes = pack(&said, &length), *large = calloc(1, ((size_t)1 << 20) + 1);

        assert_non_null(large);
        for (size_t n = 0; n < length; n++) {
                uint8_t *part = malloc(n > 0 ? n : 1);

                assert_non_null(part);
                memcpy(part, bytes, n);
                assert_int_equal(perfd_relay_status_read(part, n, &result), PERFD_E_PROTOCOL);
                free(part);
        }
        assert_int_equal(perfd_relay_status_read(large, ((size_t)1 << 20) + 1, &result), PERFD_E_PROTOCOL);
        assert_null(result);
        free(large);
        free(bytes);
}

static void test_states(void **state) {
        const Said said[] = {
                { .boot = "1", .reason = "interval", .start = 1 * SECOND, .wall = 10 * SECOND, .connected = true },
                { .boot = "2", .reason = "start", .start = 11 * SECOND, .wall = 100 * SECOND },
                { .boot = "3", .reason = "interval", .start = 20 * SECOND, .wall = 100 * SECOND, .connected = true },
                { .boot = "4", .reason = "end", .start = 30 * SECOND, .wall = 100 * SECOND },
        };
        const FleetState expected[] = { FLEET_REPLACED, FLEET_WAITING, FLEET_PUBLISHING, FLEET_ENDED };
        FleetRelay list[4];
        FleetRelays l = { .list = list, .n = 4 };

        for (size_t i = 0; i < 4; i++)
                list[i] = relay_of(&said[i]);
        for (size_t i = 0; i < 4; i++) {
                assert_int_equal(fleet_relay_state(&l, &list[i], 130 * SECOND), expected[i]);
                assert_int_equal(fleet_relay_state(&l, &list[i], 0), expected[i]); /* by a clock that is behind the server's */
        }
        for (size_t i = 1; i < 3; i++)
                assert_int_equal(fleet_relay_state(&l, &list[i], 130 * SECOND + 1), FLEET_SILENT);
        assert_int_equal(fleet_relay_state(&l, &list[3], 1000 * SECOND), FLEET_ENDED);
        for (size_t i = 0; i < 4; i++)
                perfd_result_free(list[i].result);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_rows),
                cmocka_unit_test(test_unbalanced),
                cmocka_unit_test(test_foreign_bytes),
                cmocka_unit_test(test_states),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
