/*
 * Fleets without memory: each allocation fails once. What could not be read is said to be so, and is counted as damaged; all else is there.
 */
#include "tests/unit/fleet-rig.h"

#include <errno.h>

#include "tests/unit/failing-allocations.h"

enum { MESSAGES = 7, ITEMS = 15 };

/* Without memory for it the item cannot be read, and the rest of its packet is lost. */
static void look_at_item(void *userdata, const perfd_fleet_stream *s, const perfd_item *item) {
        perfd_value v;

        (void)perfd_item_find(item, "state", &v);
        ((Rig *)userdata)->n_items++;
}

static perfd_fleet *fleet_of(Rig *r) {
        perfd_fleet_options o = PERFD_FLEET_OPTIONS_INIT;
        perfd_fleet_callbacks c = PERFD_FLEET_CALLBACKS_INIT;
        perfd_fleet *fleet = NULL;
        int k;

        o.from_oldest = true;
        c.item = look_at_item;
        k = perfd_fleet_new(&o, &c, r, &fleet);
        assert_int_equal(k, fleet ? 0 : -ENOMEM);
        return fleet;
}

/* One stream from its start, in parts too, and one from the middle. */
static void make(Played to[MESSAGES]) {
        Played whole = played_items("a", 1, 3, 4);

        to[0] = played_start("a", 1);
        to[1] = played_items("a", 1, 2, 5);
        for (unsigned i = 0; i < 2; i++) {
                to[2 + i] = whole;
                to[2 + i].n = i == 0 ? whole.n / 2 : whole.n - whole.n / 2;
                to[2 + i].bytes = malloc(to[2 + i].n);
                memcpy(to[2 + i].bytes, whole.bytes + (i == 0 ? 0 : whole.n / 2), to[2 + i].n);
                set_part(&to[2 + i], i + 1, 2);
        }
        free(whole.bytes);
        to[4] = played_end("a", 1, 4, 9, 0, 0);
        to[5] = played_items("b", 1, 5, 6);
        to[6] = played_end("b", 1, 6, 20, 0, 0);
}

static int play_one(Rig *r, Played *p, Played *descriptors) {
        const perfd_fleet_message m = message_of(descriptors);
        int k;

        while ((k = take(r, p)) == PERFD_E_NEEDED)
                if ((k = perfd_fleet_describe(r->fleet, &m)) != 0)
                        return k;
        return k;
}

static void test_each_allocation(void **state) {
        Played messages[MESSAGES], descriptors = played_descriptors();
        unsigned n = 0, failed;

        make(messages);
        do {
                const perfd_fleet_stream *s;
                Rig r = { .fleet = NULL };

                failed = 0;
                until_failure = ++n;
                r.fleet = fleet_of(&r);
                if (!r.fleet) {
                        failed++;
                        continue;
                }
                for (int i = 0; i < MESSAGES; i++) {
                        int k = play_one(&r, &messages[i], &descriptors);

                        assert_true(k == 0 || k == -ENOMEM);
                        failed += k != 0;
                }
                assert_true(failed <= 1);
                for (size_t i = 0; (s = perfd_fleet_get_stream(r.fleet, i)); i++) {
                        assert_true(!s->has_matched || s->balanced);
                        assert_true(s->damaged <= failed);
                }
                assert_true(failed ? r.n_items <= ITEMS : r.n_items == ITEMS);
                perfd_fleet_free(r.fleet);
        } while (until_failure == 0); /* it has failed */
        assert_true(n > 20); /* there are some */
        until_failure = 0;
        for (int i = 0; i < MESSAGES; i++)
                free(messages[i].bytes);
        free(descriptors.bytes);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_each_allocation),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
