/* Fleets: streams out of messages as relays publish them, also repeated ones and some that are missing, and their sums. */
#include "tests/unit/fleet-rig.h"

static void test_whole(void **state) {
        const perfd_fleet_stream *s;
        uint64_t error = 0;
        Rig r;

        rig_init(&r);
        give(&r, played_start("a", 1));
        s = only(&r);
        assert_int_equal(perfd_fleet_wall(s, 100, &error), 95);
        assert_int_equal(error, UINT64_MAX);
        give(&r, played_items("a", 1, 2, 3));
        assert_int_equal(r.last_time, 202);
        give(&r, played_gap("a", 1, 3, 4, 5));
        assert_int_equal(lost_of(s, "outbox"), 20);
        assert_int_equal(s->state, PERFD_FLEET_OPEN);
        assert_false(s->has_matched);
        give(&r, played_end("a", 1, 6, 4, 20, 2));
        check_sum(s, 26, 4, 2);
        assert_int_equal(lost_of(s, "late"), 2);
        assert_int_equal(s->state, PERFD_FLEET_ENDED);
        assert_string_equal(s->host, "a");
        assert_string_equal(s->route, "execs");
        assert_int_equal(s->first_stored, 1001);
        assert_int_equal(s->last_stored, 1006);
        assert_int_equal(s->last_sequence, 6);
        assert_int_equal(s->messages, 4);
        assert_int_equal(perfd_fleet_wall(s, 100, NULL), 23); /* by the headers */
        assert_int_equal(r.n_items, 4);
        assert_int_equal(r.n_gaps, 1);
        assert_int_equal(r.n_begun, 1);
        assert_int_equal(r.n_ended, 1);
        assert_int_equal(r.n_asked, 0);
        assert_int_equal(perfd_fleet_get_counts(r.fleet)->messages, 4);
        assert_int_equal(perfd_fleet_get_counts(r.fleet)->bytes, s->bytes);
        perfd_fleet_free(r.fleet);
}

static void test_batches(void **state) {
        perfd_fleet_options o = PERFD_FLEET_OPTIONS_INIT;
        Rig r;

        rig_init_with(&r, o, true);
        give(&r, played_start("a", 1));
        give(&r, played_items("a", 1, 2, 16));
        give(&r, played_items("a", 1, 3, 0));
        give(&r, played_items("a", 1, 4, 1));
        give(&r, played_end("a", 1, 5, 17, 0, 0));
        check_sum(only(&r), 17, 17, 0);
        assert_int_equal(r.n_items, 17);
        perfd_fleet_free(r.fleet);
}

/* A sequence number that came before is not read again, wherever it comes. */
static void test_repeated(void **state) {
        static const uint64_t order[] = { 1, 2, 2, 1, 3, 2, 3, 4, 1 };
        Rig r;

        rig_init(&r);
        for (size_t i = 0; i < sizeof(order) / sizeof(order[0]); i++)
                give(&r, order[i] == 1 ? played_start("a", 1) : played_items("a", 1, order[i], 2));
        give(&r, played_end("a", 1, 5, 6, 0, 0));
        give(&r, played_end("a", 1, 5, 6, 0, 0));
        check_sum(only(&r), 6, 6, 0);
        assert_int_equal(only(&r)->repeated, 6);
        assert_int_equal(only(&r)->messages, 11);
        assert_int_equal(r.n_items, 6);
        assert_int_equal(r.n_ended, 1);
        perfd_fleet_free(r.fleet);
}

/* Runs of one host, two machines with its name, and another host, in turns. */
static void test_runs(void **state) {
        static const perfd_fleet_state states[] = { PERFD_FLEET_CUT, PERFD_FLEET_OPEN, PERFD_FLEET_CUT, PERFD_FLEET_ENDED, PERFD_FLEET_CUT };
        const perfd_fleet_stream *s;
        Played p;
        Rig r;

        rig_init(&r);
        give(&r, played_start("a", 1));
        give(&r, played_start("b", 1));
        give(&r, played_items("a", 1, 2, 1));
        p = played_start("a", 1);
        set_header(&p, "Perfd-Machine", "another");
        give(&r, p);
        assert_int_equal(perfd_fleet_get_stream(r.fleet, 0)->state, PERFD_FLEET_OPEN);
        give(&r, played_start("a", 7)); /* ends what came before of this machine */
        give(&r, played_items("a", 1, 3, 2)); /* which can be read all the same */
        give(&r, played_items("a", 7, 2, 3));
        give(&r, played_end("a", 7, 3, 3, 0, 0));
        give(&r, played_start("a", 5)); /* older than one that is there */
        p = played_start("a", 1);
        set_header(&p, "Perfd-Machine", "another");
        set_header(&p, "Perfd-Boot", "next");
        give(&r, p);
        for (size_t i = 0; i < 5; i++)
                assert_int_equal(perfd_fleet_get_stream(r.fleet, i)->state, states[i]);
        s = perfd_fleet_get_stream(r.fleet, 5);
        assert_string_equal(s->boot, "next");
        assert_int_equal(s->state, PERFD_FLEET_OPEN);
        assert_null(perfd_fleet_get_stream(r.fleet, 6));
        assert_int_equal(perfd_fleet_get_stream(r.fleet, 0)->consumed, 3);
        check_sum(perfd_fleet_get_stream(r.fleet, 3), 3, 3, 0);
        perfd_fleet_free(r.fleet);
}

/* What the server has dropped is missing, if all of it was wanted; descriptors that streams have in common are asked for once. */
static void test_from_middle(void **state) {
        for (int from_oldest = 0; from_oldest < 2; from_oldest++) {
                perfd_fleet_options o = PERFD_FLEET_OPTIONS_INIT;
                const perfd_fleet_stream *s;
                Rig r;

                o.from_oldest = from_oldest;
                rig_init_with(&r, o, false);
                give(&r, played_items("a", 1, 5, 2));
                give(&r, played_items("b", 1, 9, 3));
                assert_int_equal(r.n_asked, 1);
                s = perfd_fleet_get_stream(r.fleet, 0);
                assert_int_equal(perfd_fleet_wall(s, 100, NULL), 23);
                give(&r, played_items("a", 1, 8, 1)); /* 6 and 7 are gone whatever was wanted */
                assert_int_equal(r.n_missing, 2);
                give(&r, played_end("a", 1, 9, 50, 0, 0));
                assert_int_equal(s->missing, from_oldest ? 6 : 2);
                check_sum(s, 50, 3, from_oldest ? 1 : 0);
                assert_int_equal(from_oldest ? lost_of(s, "gone") : s->skipped, 47);
                perfd_fleet_free(r.fleet);
        }
}

/* A gap that has gone with its packet is known by the closing ledger. */
static void test_lost_gap(void **state) {
        Rig r;

        rig_init(&r);
        give(&r, played_start("a", 1));
        give(&r, played_end("a", 1, 6, 4, 20, 2));
        check_sum(only(&r), 26, 0, 3);
        assert_int_equal(lost_of(only(&r), "outbox"), 20);
        assert_int_equal(lost_of(only(&r), "gone"), 4);
        perfd_fleet_free(r.fleet);
}

/* Nothing is missing, and the sum is wrong: that is nobody's loss. */
static void test_unbalanced(void **state) {
        for (uint64_t sent = 1; sent < 4; sent += 2) {
                Rig r;

                rig_init(&r);
                give(&r, played_start("a", 1));
                give(&r, played_items("a", 1, 2, 2));
                give(&r, played_end("a", 1, 3, sent, 0, 0));
                assert_true(only(&r)->has_matched);
                assert_false(only(&r)->balanced);
                assert_int_equal(only(&r)->n_lost, 0);
                perfd_fleet_free(r.fleet);
        }
}

static Played part_of(const Played *whole, unsigned part, unsigned n) {
        size_t size = whole->n / n, begin = (part - 1) * size;
        Played p = *whole;

        p.n = part < n ? size : whole->n - begin;
        p.bytes = malloc(p.n + 1);
        memcpy(p.bytes, whole->bytes + begin, p.n);
        set_part(&p, part, n);
        return p;
}

/* Parts are a packet if all of them come in their order; also the descriptors. */
static void test_parts(void **state) {
        Played items = played_items("a", 1, 2, 9), next = played_items("a", 1, 3, 5), d = played_descriptors();
        Rig r;

        rig_init(&r);
        give(&r, played_start("a", 1));
        for (unsigned i = 1; i <= 3; i++)
                give(&r, part_of(&items, i, 3));
        assert_int_equal(r.n_items, 9);
        give(&r, part_of(&next, 2, 3));
        give(&r, part_of(&next, 3, 3));
        give(&r, part_of(&next, 1, 3));
        give(&r, part_of(&next, 3, 3));
        give(&r, part_of(&next, 2, 3));
        assert_int_equal(r.n_items, 9);
        assert_int_equal(only(&r)->damaged, 0);
        for (unsigned i = 1; i <= 2; i++)
                give(&r, part_of(&next, i, 2));
        assert_int_equal(r.n_items, 14);
        give(&r, played_end("a", 1, 4, 14, 0, 0));
        check_sum(only(&r), 14, 14, 0);
        perfd_fleet_free(r.fleet);

        rig_init(&r);
        assert_int_equal(take(&r, &items), PERFD_E_NEEDED);
        for (unsigned i = 1; i <= 3; i++) {
                Played part = part_of(&d, i, 3);
                const perfd_fleet_message m = message_of(&part);

                (void)snprintf(strrchr(part.subject, '.'), 8, ".%u", i);
                assert_string_equal(perfd_fleet_needed(r.fleet), part.subject);
                assert_int_equal(perfd_fleet_describe(r.fleet, &m), i < 3 ? PERFD_E_NEEDED : 0);
                free(part.bytes);
        }
        assert_int_equal(take(&r, &items), 0);
        assert_int_equal(r.n_items, 9);
        perfd_fleet_free(r.fleet);
        free(items.bytes);
        free(next.bytes);
        free(d.bytes);
}

/* A message of a relay about itself is no stream, and no stranger's. */
static void test_status(void **state) {
        Played p = played_start("a", 1);
        Rig r;

        rig_init(&r);
        (void)snprintf(p.subject, sizeof(p.subject), "perfd.a.status.0123.4567");
        p.headers[0].name = NULL;
        give(&r, p);
        assert_int_equal(perfd_fleet_get_counts(r.fleet)->messages, 1);
        assert_int_equal(perfd_fleet_get_counts(r.fleet)->foreign, 0);
        assert_null(perfd_fleet_get_stream(r.fleet, 0));
        perfd_fleet_free(r.fleet);
}

static perfd_fleet_reckoning reckoning_of(const char *host, uint64_t sequence, uint64_t matched) {
        perfd_fleet_reckoning r = PERFD_FLEET_RECKONING_INIT;

        r.host = host;
        r.route = "execs";
        r.machine = "0123456789abcdef0123456789abcdef";
        r.boot = "fedcba9876543210fedcba9876543210";
        r.epoch = 1;
        r.sequence = sequence;
        r.matched = matched;
        return r;
}

static int reckon(Rig *r, const char *host, uint64_t sequence, uint64_t matched) {
        const perfd_fleet_reckoning known = reckoning_of(host, sequence, matched);

        return perfd_fleet_reckon(r->fleet, &known);
}

/* What is known from elsewhere closes the sum of a stream without an end, until more comes. */
static void test_reckon(void **state) {
        const perfd_count lost[] = { { "outbox", 20 }, { "late", 1 } };
        perfd_fleet_reckoning known = reckoning_of("a", 9, 31);
        const perfd_fleet_stream *s;
        Rig r;

        rig_init(&r);
        give(&r, played_start("a", 1));
        give(&r, played_items("a", 1, 2, 3));
        s = only(&r);
        assert_int_equal(reckon(&r, "a", 1, 1), 0); /* it is behind what has come */
        assert_false(s->has_matched);
        assert_int_equal(reckon(&r, "a", 2, 2), PERFD_E_INVALID);
        assert_int_equal(reckon(&r, "a", 2, 3), 0);
        check_sum(s, 3, 3, 0);
        known.lost = lost;
        known.n_lost = 2;
        assert_int_equal(perfd_fleet_reckon(r.fleet, &known), 0);
        check_sum(s, 31, 3, 3);
        assert_int_equal(lost_of(s, "gone"), 7);
        assert_int_equal(s->missing, 7);
        assert_int_equal(r.n_missing, 7);
        give(&r, played_items("a", 1, 10, 2));
        assert_false(s->has_matched);
        assert_int_equal(r.n_missing, 7);
        give(&r, played_end("a", 1, 11, 12, 20, 1));
        check_sum(s, 33, 5, 3);
        assert_int_equal(reckon(&r, "a", 12, 40), 0);
        check_sum(s, 33, 5, 3);
        perfd_fleet_free(r.fleet);
}

/* A stream of which nothing is left, and one of which the end is not. */
static void test_reckon_end(void **state) {
        perfd_fleet_reckoning known = reckoning_of("a", 7, 50);
        Rig r;

        rig_init(&r);
        known.ended = true;
        assert_int_equal(perfd_fleet_reckon(r.fleet, &known), 0);
        check_sum(only(&r), 50, 0, 1);
        assert_int_equal(only(&r)->state, PERFD_FLEET_ENDED);
        assert_int_equal(only(&r)->missing, 7);
        assert_int_equal(only(&r)->messages, 0);
        assert_int_equal(r.n_begun, 1);
        give(&r, played_items("a", 1, 3, 2));
        assert_int_equal(only(&r)->repeated, 1);
        assert_int_equal(reckon(&r, "a b", 1, 1), PERFD_E_INVALID);
        assert_int_equal(reckon(&r, NULL, 1, 1), PERFD_E_INVALID);
        assert_int_equal(reckon(&r, "b", 0, 0), PERFD_E_INVALID);
        assert_int_equal(reckon(&r, "b", UINT64_MAX, 0), PERFD_E_INVALID);
        known.size = 0;
        assert_int_equal(perfd_fleet_reckon(r.fleet, &known), PERFD_E_INVALID);
        perfd_fleet_free(r.fleet);
}

/* The host was booted again, and of the stream before it nothing is left: that is no newer one. */
static void test_reckon_older(void **state) {
        for (int has_ended = 0; has_ended < 2; has_ended++) {
                perfd_fleet_reckoning known = reckoning_of("a", 7, 50);
                const perfd_fleet_stream *s;
                Rig r;

                known.boot = "before";
                known.ended = has_ended;
                rig_init(&r);
                give(&r, played_start("a", 1));
                give(&r, played_items("a", 1, 2, 3));
                assert_int_equal(perfd_fleet_reckon(r.fleet, &known), 0);
                s = perfd_fleet_get_stream(r.fleet, 1);
                assert_int_equal(s->state, has_ended ? PERFD_FLEET_ENDED : PERFD_FLEET_CUT);
                check_sum(s, 50, 0, 1);
                s = perfd_fleet_get_stream(r.fleet, 0);
                assert_int_equal(s->state, PERFD_FLEET_OPEN);
                give(&r, played_items("a", 1, 3, 1));
                assert_int_equal(r.n_asked, 0); /* it is read on, not anew */
                assert_int_equal(s->consumed, 4);
                perfd_fleet_free(r.fleet);
        }
}

/* The first message that is left is not the first part of its packet: the packet is missing, as those before it. */
static void test_from_part(void **state) {
        for (uint64_t sequence = 1; sequence < 5; sequence += 3) {
                Played first = sequence == 1 ? played_start("a", 1) : played_items("a", 1, sequence, 3);
                const perfd_fleet_stream *s;
                Rig r;

                rig_init(&r);
                give(&r, part_of(&first, 2, 2));
                s = only(&r);
                assert_int_equal(s->packets, 0);
                assert_int_equal(reckon(&r, "a", sequence, 30), 0);
                check_sum(s, 30, 0, 1);
                assert_int_equal(s->missing, sequence);
                perfd_fleet_free(r.fleet);

                rig_init(&r);
                give(&r, part_of(&first, 2, 2));
                s = only(&r);
                give(&r, played_items("a", 1, sequence + 1, 2));
                give(&r, played_end("a", 1, sequence + 2, 2 + 3, 0, 0));
                assert_int_equal(s->missing, sequence);
                assert_int_equal(s->damaged + s->undescribed, 0);
                check_sum(s, 5, 2, 1);
                assert_int_equal(lost_of(s, "gone"), 3);
                assert_int_equal(r.n_asked, 1);
                perfd_fleet_free(r.fleet);
                free(first.bytes);
        }
}

static Played matched_items(uint64_t sequence, size_t n, uint64_t matched) {
        Played p = played_items("a", 1, sequence, n);

        set_number(&p, "Perfd-Matched", matched);
        return p;
}

/* What is in no packet is not called missing if no packet can have had it, though others are missing. */
static void test_no_hiding_place(void **state) {
        for (int from_oldest = 0; from_oldest < 2; from_oldest++) {
                perfd_fleet_options o = PERFD_FLEET_OPTIONS_INIT;
                const perfd_fleet_stream *s;
                Rig r;

                o.from_oldest = from_oldest;
                rig_init_with(&r, o, false);
                give(&r, matched_items(5, 2, 30));
                s = only(&r);
                check_sum(s, 30, 2, from_oldest ? 1 : 0);
                give(&r, matched_items(6, 3, 33));
                check_sum(s, 33, 5, from_oldest ? 1 : 0);
                give(&r, matched_items(7, 3, 38)); /* two more than it has */
                assert_false(s->balanced);
                give(&r, matched_items(8, 1, 39));
                assert_false(s->balanced);
                give(&r, matched_items(9, 1, 38)); /* so the two were nobody's */
                check_sum(s, 38, 10, from_oldest ? 1 : 0);
                give(&r, matched_items(11, 1, 45));
                check_sum(s, 45, 11, 1);
                give(&r, played_items("a", 1, 12, 1)); /* which does not say it */
                give(&r, matched_items(13, 1, 46)); /* one less than have come */
                assert_false(s->balanced);
                give(&r, played_end("a", 1, 14, 47 + (uint64_t)from_oldest, 0, 9));
                assert_int_equal(s->balanced, !from_oldest);
                perfd_fleet_free(r.fleet);
        }
}

/* A relay that says with each packet what has matched: the sum is closed all the time. */
static void test_matched(void **state) {
        for (int from_oldest = 0; from_oldest < 2; from_oldest++) {
                perfd_fleet_options o = PERFD_FLEET_OPTIONS_INIT;
                const perfd_fleet_stream *s;
                Played p;
                Rig r;

                o.from_oldest = from_oldest;
                rig_init_with(&r, o, false);
                p = played_items("a", 1, 5, 2);
                set_number(&p, "Perfd-Matched", 30);
                give(&r, p);
                s = only(&r);
                check_sum(s, 30, 2, from_oldest ? 1 : 0);
                assert_int_equal(from_oldest ? lost_of(s, "gone") : s->skipped, 28);
                p = played_items("a", 1, 8, 1);
                set_number(&p, "Perfd-Matched", 41);
                give(&r, p);
                check_sum(s, 41, 3, 1);
                assert_int_equal(lost_of(s, "gone"), from_oldest ? 38 : 10);
                p = played_items("a", 1, 9, 1);
                set_number(&p, "Perfd-Matched", 3); /* that cannot be */
                give(&r, p);
                assert_false(s->balanced);
                give(&r, played_end("a", 1, 10, 42, 0, 0));
                check_sum(s, 42, 4, 1);
                perfd_fleet_free(r.fleet);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_whole),
                cmocka_unit_test(test_batches),
                cmocka_unit_test(test_repeated),
                cmocka_unit_test(test_runs),
                cmocka_unit_test(test_from_middle),
                cmocka_unit_test(test_lost_gap),
                cmocka_unit_test(test_unbalanced),
                cmocka_unit_test(test_parts),
                cmocka_unit_test(test_status),
                cmocka_unit_test(test_reckon),
                cmocka_unit_test(test_reckon_end),
                cmocka_unit_test(test_reckon_older),
                cmocka_unit_test(test_from_part),
                cmocka_unit_test(test_matched),
                cmocka_unit_test(test_no_hiding_place),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
