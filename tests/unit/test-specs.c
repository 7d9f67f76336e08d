/*
 * What a client asks for as a spec, and back: each field of the messages comes back as it went, a field that is new in perfd.proto
 * too; what contradicts itself is refused; and no allocation that fails leaks or is taken for less.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "daemon/supervisor/events/specs.h"
#include "tests/unit/failing-allocations.h"

static Config config;
static Settings settings = { .config = &config };
static Operations operations;
static Events events = { .settings = &settings, .operations = &operations };

#define TEXT(literal) ((char *)literal)

/* Two that have all fields between them: some exclude each other. */
static uint32_t pids[] = { 7, 4194304 }, tids[] = { 9 };
static char *cgroups[] = { TEXT("/a"), TEXT("b*") }, *containers[] = { TEXT("web") }, *units[] = { TEXT("nginx.service") };
static Perfd__V1__AttrSetting attr, *attrs[] = { &attr };
static Perfd__V1__ExternalField field, *fields[] = { &field };
static Perfd__V1__Target tasks, groups;
static Perfd__V1__EventSpec first, second;

static void fill(void) {
        perfd__v1__target__init(&tasks);
        tasks.pids = pids;
        tasks.n_pids = ARRAY_SIZE(pids);
        tasks.tids = tids;
        tasks.n_tids = ARRAY_SIZE(tids);
        tasks.no_inherit = true;
        perfd__v1__target__init(&groups);
        groups.cgroups = cgroups;
        groups.n_cgroups = ARRAY_SIZE(cgroups);
        groups.containers = containers;
        groups.n_containers = ARRAY_SIZE(containers);
        groups.units = units;
        groups.n_units = ARRAY_SIZE(units);
        groups.cpus = TEXT("0");
        perfd__v1__event_spec__init(&first);
        first.event = TEXT("kretprobe:vfs_read");
        first.name = TEXT("reads");
        first.target = &tasks;
        first.filter = TEXT("ret > 0");
        first.period = 3;
        first.callchain = PERFD__V1__CALLCHAIN__CALLCHAIN_BOTH;
        first.disabled = first.include_self = true;
        first.args = TEXT("ret=$retval");
        first.maxactive = 16;
        first.group = TEXT("mine");
        first.added_by_case = PERFD__V1__EVENT_SPEC__ADDED_BY_UID;
        first.uid = 1000;
        perfd__v1__attr_setting__init(&attr);
        attr.name = TEXT("exclude-user");
        attr.value = TEXT("true");
        perfd__v1__external_field__init(&field);
        field.name = TEXT("user");
        field.type = TEXT("text");
        perfd__v1__event_spec__init(&second);
        second.event = TEXT("cycles");
        second.name = TEXT("busy");
        second.group = TEXT("default");
        second.target = &groups;
        second.frequency = 99;
        second.interval = 1000000000;
        second.fallback = TEXT("cpu-clock");
        second.attr = attrs;
        second.n_attr = ARRAY_SIZE(attrs);
        second.fields = fields;
        second.n_fields = ARRAY_SIZE(fields);
}

/* The bits of the fields that are set, by their numbers: without one of them the message is shorter on the wire. */
static uint64_t fields_of(const ProtobufCMessage *m) {
        uint8_t bytes[1024];
        size_t n = protobuf_c_message_get_packed_size(m);
        uint64_t seen = 0;

        assert_in_range(n, 1, sizeof(bytes));
        assert_int_equal(protobuf_c_message_pack(m, bytes), n);
        for (unsigned i = 0; i < m->descriptor->n_fields; i++) {
                ProtobufCMessage *without;
                const ProtobufCFieldDescriptor *f = &m->descriptor->fields[i];
                ProtobufCMessageDescriptor less = *m->descriptor;
                ProtobufCFieldDescriptor others[32];
                size_t n_others = 0;

                assert_in_range(less.n_fields, 1, ARRAY_SIZE(others));
                for (unsigned k = 0; k < less.n_fields; k++)
                        if (k != i)
                                others[n_others++] = m->descriptor->fields[k];
                without = __real_malloc(m->descriptor->sizeof_message);
                memcpy(without, m, m->descriptor->sizeof_message);
                less.fields = others;
                less.n_fields = (unsigned)n_others;
                without->descriptor = &less;
                if (protobuf_c_message_get_packed_size(without) < n)
                        seen |= (uint64_t)1 << f->id;
                free(without);
        }
        return seen;
}

static uint64_t fields_that_exist(const ProtobufCMessageDescriptor *d) {
        uint64_t all = 0;

        for (unsigned i = 0; i < d->n_fields; i++)
                all |= (uint64_t)1 << d->fields[i].id;
        return all;
}

/* 0, and *ret is malloc'ed; or what refuses it. */
static int there_and_back(const Perfd__V1__EventSpec *m, Perfd__V1__EventSpec **ret) {
        _cleanup_(event_spec_deinit) EventSpec spec = EVENT_SPEC_NULL;
        Explanation e = EXPLANATION_NULL;
        int r = spec_from_message(&events, m, &spec, &e);

        *ret = NULL;
        return r == 0 ? spec_message(&spec, ret) : r;
}

static void free_message(Perfd__V1__EventSpec *m) {
        if (m)
                perfd__v1__event_spec__free_unpacked(m, NULL);
}

static void check_same(const Perfd__V1__EventSpec *m) {
        uint8_t bytes[1024], others[1024];
        size_t n = perfd__v1__event_spec__pack(m, bytes);
        Perfd__V1__EventSpec *back;

        assert_int_equal(there_and_back(m, &back), 0);
        assert_int_equal(perfd__v1__event_spec__get_packed_size(back), n);
        perfd__v1__event_spec__pack(back, others);
        assert_memory_equal(others, bytes, n);
        free_message(back);
}

static void test_there_and_back(void **state) {
        fill();
        assert_int_equal(fields_of(&first.base) | fields_of(&second.base), fields_that_exist(first.base.descriptor));
        assert_int_equal(fields_of(&tasks.base) | fields_of(&groups.base) | 1 << 1, fields_that_exist(tasks.base.descriptor));
        check_same(&first);
        check_same(&second);
}

/* A process that is named twice is one, which is noted. */
static void test_duplicates(void **state) {
        uint32_t twice[] = { 5, 6, 5, 5 };
        Perfd__V1__EventSpec *back;

        fill();
        tasks.pids = twice;
        tasks.n_pids = ARRAY_SIZE(twice);
        assert_int_equal(there_and_back(&first, &back), 0);
        assert_int_equal(back->target->n_pids, 2);
        assert_int_equal(back->target->pids[0], 5);
        assert_int_equal(back->target->pids[1], 6);
        free_message(back);
}

static void check_refused(int refusal, const char *reason, const char *words) {
        _cleanup_(event_spec_deinit) EventSpec spec = EVENT_SPEC_NULL;
        Explanation e = EXPLANATION_NULL;

        assert_int_equal(spec_from_message(&events, &first, &spec, &e), refusal);
        assert_string_equal(e.reason, reason);
        if (!strstr(e.text, words))
                fail_msg("%s", e.text);
        fill();
}

static void test_refused(void **state) {
        static uint32_t none[] = { 0 };

        fill();
        first.callchain = 8;
        check_refused(REFUSED_INVALID, "bad-request", "callchain 8 is unknown");
        first.filter = TEXT("a\x01");
        check_refused(REFUSED_INVALID, "bad-filter", "");
        first.args = TEXT("a\x01");
        check_refused(REFUSED_INVALID, "bad-args", "");
        first.interval = 1;
        check_refused(REFUSED_INVALID, "bad-event", "");
        first.period = UINT64_MAX;
        check_refused(REFUSED_INVALID, "bad-event", "");
        first.maxactive = UINT32_MAX;
        check_refused(REFUSED_INVALID, "bad-event", "");
        first.group = TEXT("a b");
        check_refused(REFUSED_INVALID, "bad-name", "the group's name");
        tasks.tids = none;
        check_refused(REFUSED_INVALID, "bad-target", "0 is not a pid or tid: they are from 1 to 4194304");
        tasks.units = units;
        tasks.n_units = 1;
        check_refused(REFUSED_INVALID, "bad-target", "tasks and cgroups exclude each other");
        tasks.name = TEXT("web");
        check_refused(REFUSED_INVALID, "bad-target", "the name of a target (web) excludes pids");
        first.target = &groups;
        groups.cpus = TEXT("0-");
        check_refused(REFUSED_INVALID, "bad-target", "");
        first.target = &groups;
        groups.n_cgroups = CONFIG_NAMES_MAX + 1;
        check_refused(REFUSED_INVALID, "bad-target", "cgroups: found");
        perfd__v1__target__init(&tasks);
        tasks.name = TEXT("web");
        check_refused(REFUSED_NOT_FOUND, "bad-target", "the configuration has no target called web");
}

static void check_allocations(const Perfd__V1__EventSpec *m) {
        unsigned n = 0;
        int r;

        do {
                Perfd__V1__EventSpec *back;

                until_failure = ++n;
                r = there_and_back(m, &back);
                if (until_failure == 0 && r != -ENOMEM)
                        fail_msg("allocation %u: %d", n, r);
                until_failure = 0;
                free_message(back);
        } while (r != 0);
        assert_in_range(n, 20, 60);
}

static void test_allocations(void **state) {
        fill();
        check_allocations(&first);
        check_allocations(&second);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_there_and_back),
                cmocka_unit_test(test_duplicates),
                cmocka_unit_test(test_refused),
                cmocka_unit_test(test_allocations),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
