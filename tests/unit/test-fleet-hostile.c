/* Fleets: messages that are damaged or invented. They are counted, nothing of them is believed, and streams go on. */
#include "tests/unit/fleet-rig.h"

/* Descriptors that are not there, or are not what they are called, are asked for once; the ledger says what that costs. */
static void test_undescribed(void **state) {
        for (int way = 0; way < 4; way++) {
                Played d = played_descriptors(), items = played_items("a", 1, 5, 3);
                perfd_fleet_message m = message_of(&d);
                Rig r;

                rig_init(&r);
                assert_int_equal(perfd_fleet_describe(r.fleet, &m), PERFD_E_STATE);
                assert_int_equal(take(&r, &items), PERFD_E_NEEDED);
                assert_int_equal(take(&r, &items), PERFD_E_NEEDED);
                assert_int_equal(perfd_fleet_get_counts(r.fleet)->messages, 0);
                if (way == 1)
                        d.bytes[d.n - 1] ^= 1; /* another digest */
                if (way == 2)
                        d.subject[strlen("perfd-descriptors.")] = 'x';
                if (way == 3)
                        set_header(&d, "Perfd-Part", "2/2");
                m = message_of(&d);
                assert_int_equal(perfd_fleet_describe(r.fleet, way == 0 ? NULL : &m), 0);
                assert_int_equal(take(&r, &items), 0);
                give(&r, played_items("a", 1, 6, 2));
                assert_int_equal(r.n_asked, 0);
                assert_int_equal(only(&r)->undescribed, 2);
                assert_int_equal(lost_of(only(&r), "undescribed"), 5);
                assert_int_equal(r.n_refused, 2);
                assert_int_equal(r.n_items, 0);
                free(d.bytes);
                free(items.bytes);
                perfd_fleet_free(r.fleet);
        }
}

/* With their digest, but with more than descriptors in them. */
static void test_descriptors_with_items(void **state) {
        Played d = played_items("a", 1, 5, 1), items = played_items("a", 1, 5, 3);
        perfd_fleet_message m;
        char digest[33];
        Rig r;

        rig_init(&r);
        digest_of(&d, digest);
        set_header(&items, "Perfd-Descriptors", digest);
        assert_int_equal(take(&r, &items), PERFD_E_NEEDED);
        (void)snprintf(d.subject, sizeof(d.subject), "perfd-descriptors.%s.1", digest);
        m = message_of(&d);
        assert_int_equal(perfd_fleet_describe(r.fleet, &m), 0);
        assert_int_equal(take(&r, &items), 0);
        assert_int_equal(only(&r)->undescribed, 1);
        assert_int_equal(r.n_items, 0);
        free(d.bytes);
        free(items.bytes);
        perfd_fleet_free(r.fleet);
}

/* Packets that are never complete have a limit in all: the oldest of them goes. */
static void test_parts_limit(void **state) {
        enum { SIZE = 15 << 20, HOSTS = 5 };
        Played whole = played_items("a", 1, 1, 0);
        Rig r;

        rig_init(&r);
        free(whole.bytes);
        whole.bytes = calloc(1, SIZE);
        for (int i = 0; i < HOSTS; i++) {
                Played p = whole;

                p.n = SIZE;
                (void)snprintf(p.subject, sizeof(p.subject), "perfd.%c.execs", 'a' + i);
                set_part(&p, 1, 2);
                assert_int_equal(take(&r, &p), 0);
        }
        for (int i = 0; i < HOSTS; i++) { /* all have another part to come; that of the first one has nothing before it */
                Played p = whole;

                p.n = 1;
                (void)snprintf(p.subject, sizeof(p.subject), "perfd.%c.execs", 'a' + i);
                set_part(&p, 2, 2);
                assert_int_equal(take(&r, &p), 0);
                assert_int_equal(perfd_fleet_get_stream(r.fleet, (size_t)i)->damaged, i > 0); /* zeros are no packet */
        }
        free(whole.bytes);
        perfd_fleet_free(r.fleet);
}

/* What no relay publishes is counted, and makes no stream. */
static void test_foreign(void **state) {
        static const struct {
                const char *header, *value;
        } wrong[] = {
                { "Perfd-Machine", "" }, { "Perfd-Machine", "a b" }, { "Perfd-Boot", "" }, { "Perfd-Boot", "\xff" }, { "Perfd-Epoch", "" },
                { "Perfd-Epoch", "-1" }, { "Perfd-Epoch", "18446744073709551616" }, { "Perfd-Epoch", "1 " }, { "Perfd-Sequence", "" },
                { "Perfd-Sequence", "0" }, { "Perfd-Sequence", "18446744073709551615" }, { "Perfd-Sequence", "0x5" },
                { "Perfd-Sequence", " 5" }, { "Perfd-Descriptors", "" }, { "Perfd-Descriptors", "0123456789abcdef" },
                { "Perfd-Descriptors", "0123456789ABCDEF0123456789ABCDEF" }, { "Perfd-Descriptors", "../../../0123456789abcdef0123456" },
                { "Perfd-Items", "" }, { "Perfd-Items", "18446744073709551616" }, { "Perfd-Matched", "-1" },
                { "Perfd-Matched", "x" }, { "Perfd-Wall-Offset", "" }, { "Perfd-Wall-Offset", "-" }, { "Perfd-Wall-Offset", "9223372036854775808" },
                { "Perfd-Part", "" }, { "Perfd-Part", "1" }, { "Perfd-Part", "0/1" }, { "Perfd-Part", "2/1" }, { "Perfd-Part", "1/65" },
                { "Perfd-Part", "1/18446744073709551617" }, { "Perfd-Part", "1/1/1" }, { "Perfd-Part", "1/-1" },
                { "Perfd-Machine", "01234567890123456789012345678901234567890123456789012345678901234" },
        };
        static const char *const subjects[] = { "perfd.a", "perfd.a.", "perfd..a", "perfd.a.b.c", "perfd.a b.c", "other.a.execs", "perfd.*.execs",
                                                "perfd.a.\xc3\xa4", "" };
        uint64_t n = 0;
        Rig r;

        rig_init(&r);
        for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++, n++) {
                Played p = played_start("a", 1);

                set_header(&p, wrong[i].header, wrong[i].value);
                give(&r, p);
                assert_non_null(strstr(r.refused, strncmp(wrong[i].header, "Perfd-Mac", 9) == 0 || wrong[i].header[6] == 'B' ? "machine and boot" : wrong[i].header));
        }
        for (size_t i = 0; i < sizeof(subjects) / sizeof(subjects[0]); i++, n++) {
                Played p = played_start("a", 1);

                (void)snprintf(p.subject, sizeof(p.subject), "%s", subjects[i]);
                give(&r, p);
        }
        assert_int_equal(perfd_fleet_get_counts(r.fleet)->foreign, n);
        assert_int_equal(perfd_fleet_get_counts(r.fleet)->messages, n);
        assert_int_equal(r.n_refused, n);
        assert_null(perfd_fleet_get_stream(r.fleet, 0));
        perfd_fleet_free(r.fleet);
}

/* A packet that is none costs what it had; the stream goes on behind it. */
static void test_damaged(void **state) {
        for (int way = 0; way < 4; way++) {
                Played p = played_items("a", 1, 3, 4);
                Rig r;

                rig_init(&r);
                give(&r, played_start("a", 1));
                give(&r, played_items("a", 1, 2, 1));
                if (way == 0)
                        p.n -= 3;
                if (way == 1)
                        memset(p.bytes, 0xff, p.n);
                if (way == 2) {
                        free(p.bytes);
                        p = played_items("a", 1, 4, 4); /* its header says another number */
                        set_number(&p, "Perfd-Sequence", 3);
                }
                if (way == 3) {
                        free(p.bytes);
                        p = played_gap("a", 1, 3, UINT64_MAX - 1, 3); /* takes all that will ever come */
                        set_number(&p, "Perfd-Items", 4);
                }
                give(&r, p);
                assert_int_equal(only(&r)->damaged, 1);
                assert_int_equal(r.n_refused, 1);
                assert_null(strstr(r.refused, "the daemon")); /* it has not sent it to this reader */
                assert_true(way > 1 || strstr(r.refused, "is it damaged, or of a newer perfd?"));
                give(&r, played_items("a", 1, 4, 2));
                assert_int_equal(r.n_asked, 1);
                give(&r, played_end("a", 1, 5, 7, 0, 0));
                check_sum(only(&r), 7, 3, 1);
                assert_int_equal(r.n_items, 3);
                assert_int_equal(lost_of(only(&r), "damaged"), 4);
                assert_int_equal(only(&r)->missing, 0);
                assert_int_equal(r.n_gaps, 0);
                perfd_fleet_free(r.fleet);
        }
}

/* What headers and gaps say has limits, and sums do not overflow. */
static void test_hostile_counts(void **state) {
        Rig r;

        rig_init(&r);
        give(&r, played_start("a", 1));
        for (uint64_t i = 2; i < 5; i++) {
                Perfd__V1__Packet packet = PERFD__V1__PACKET__INIT;
                Perfd__V1__Gap gap = PERFD__V1__GAP__INIT, *gaps[] = { &gap };
                Played p;

                gap.reason = (char *)"invented, and longer than any reason that there is";
                gap.first_sequence = gap.last_sequence = 2 * i;
                gap.items = UINT64_MAX;
                packet.sequence = 2 * i + 1;
                packet.gap = gaps;
                packet.n_gap = 1;
                p = played_packet("a", 1, &packet);
                give(&r, p);
        }
        assert_int_equal(only(&r)->n_lost, 1);
        assert_int_equal(only(&r)->lost[0].count, UINT64_MAX);
        for (unsigned i = 0; i < 100; i++) {
                Perfd__V1__Packet packet = PERFD__V1__PACKET__INIT;
                Perfd__V1__Gap gap = PERFD__V1__GAP__INIT, *gaps[] = { &gap };
                char reason[16];

                (void)snprintf(reason, sizeof(reason), "reason%u", i);
                gap.reason = reason;
                gap.first_sequence = gap.last_sequence = 10 + 2 * i;
                gap.items = 1;
                packet.sequence = 11 + 2 * i;
                packet.gap = gaps;
                packet.n_gap = 1;
                give(&r, played_packet("a", 1, &packet));
        }
        assert_int_equal(only(&r)->n_lost, 16);
        assert_int_equal(lost_of(only(&r), "other"), 100 - 14);
        for (int i = 0; i < 2; i++) {
                Played p = played_items("a", 1, 500 + (uint64_t)i, 1);

                memset(p.bytes, 0xff, p.n);
                set_number(&p, "Perfd-Items", UINT64_MAX); /* counted as the most that there can be */
                give(&r, p);
        }
        assert_int_equal(lost_of(only(&r), "damaged"), 16 << 20);
        give(&r, played_end("a", 1, UINT64_MAX - 1, 0, 0, 0));
        assert_false(only(&r)->balanced);
        perfd_fleet_free(r.fleet);
}

/* Behind the end nothing comes; more streams than may be are refused; one that has ended can be forgotten. */
static void test_limits(void **state) {
        perfd_fleet_options o = PERFD_FLEET_OPTIONS_INIT;
        Rig r;

        o.max_streams = 2;
        rig_init_with(&r, o, false);
        give(&r, played_start("a", 1));
        give(&r, played_end("a", 1, 2, 0, 0, 0));
        give(&r, played_items("a", 1, 3, 1));
        assert_int_equal(perfd_fleet_get_stream(r.fleet, 0)->damaged, 1);
        assert_true(perfd_fleet_get_stream(r.fleet, 0)->balanced);
        give(&r, played_start("b", 1));
        give(&r, played_start("c", 1));
        assert_int_equal(perfd_fleet_get_counts(r.fleet)->refused, 1);
        assert_int_equal(perfd_fleet_forget(r.fleet, perfd_fleet_get_stream(r.fleet, 0)), 0);
        assert_string_equal(perfd_fleet_get_stream(r.fleet, 0)->host, "b");
        give(&r, played_start("c", 1));
        give(&r, played_items("b", 1, 2, 1));
        assert_string_equal(perfd_fleet_get_stream(r.fleet, 1)->host, "c");
        assert_int_equal(perfd_fleet_get_stream(r.fleet, 0)->consumed, 1);
        perfd_fleet_free(r.fleet);
}

static void test_arguments(void **state) {
        perfd_fleet_callbacks c = PERFD_FLEET_CALLBACKS_INIT;
        Played p = played_start("a", 1);
        perfd_fleet_message m = message_of(&p);
        perfd_fleet *fleet = NULL;

        assert_int_equal(perfd_fleet_new(NULL, NULL, NULL, &fleet), PERFD_E_INVALID);
        c.item = on_item;
        c.batch = on_batch;
        assert_int_equal(perfd_fleet_new(NULL, &c, NULL, &fleet), PERFD_E_INVALID);
        c.item = NULL;
        c.batch = NULL;
        c.size = 0;
        assert_int_equal(perfd_fleet_new(NULL, &c, NULL, &fleet), PERFD_E_INVALID);
        c.size = sizeof(c);
        assert_int_equal(perfd_fleet_new(NULL, &c, NULL, &fleet), 0);
        assert_int_equal(perfd_fleet_take(fleet, NULL), PERFD_E_INVALID);
        m.size = 0;
        assert_int_equal(perfd_fleet_take(fleet, &m), PERFD_E_INVALID);
        m = message_of(&p);
        m.header = NULL;
        assert_int_equal(perfd_fleet_take(fleet, &m), PERFD_E_INVALID);
        m = message_of(&p);
        m.bytes = NULL;
        assert_int_equal(perfd_fleet_take(fleet, &m), PERFD_E_INVALID);
        m = message_of(&p);
        assert_int_equal(perfd_fleet_take(fleet, &m), 0);
        assert_null(perfd_fleet_needed(fleet));
        free(p.bytes);
        perfd_fleet_free(fleet);
        perfd_fleet_free(NULL);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_undescribed),
                cmocka_unit_test(test_descriptors_with_items),
                cmocka_unit_test(test_parts_limit),
                cmocka_unit_test(test_foreign),
                cmocka_unit_test(test_damaged),
                cmocka_unit_test(test_hostile_counts),
                cmocka_unit_test(test_limits),
                cmocka_unit_test(test_arguments),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
