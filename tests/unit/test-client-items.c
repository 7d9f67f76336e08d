/*
 * Items as libperfd reads them where they lie, beside the messages that they were made of: of every shape that perfd writes and
 * of others that protobuf allows, in whatever order they are asked for what is in them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "client/item/decode.h"
#include "proto/item-fields.h"
#include "proto/perfd.pb-c.h"

#define ROUNDS 20000
#define FIXED 1   /* three numbers, two of them in an array */
#define TEXTS 2   /* a number, a text, a number, bytes */
#define DYNAMIC 3 /* a list of its own length, a number, a text */
#define BARE 4    /* no field */
#define LARGE 5   /* 200 numbers */
#define EVENTS 5

static Descriptors descriptors;
static struct perfd_item item;
static uint64_t seed = 88172645463325252;

static uint64_t next_random(void) { /* xorshift64 */
        seed ^= seed << 13;
        seed ^= seed >> 7;
        return seed ^= seed << 17;
}

typedef struct FieldSpec {
        const char *name;
        unsigned kind, count;
} FieldSpec;

static const FieldSpec fields[EVENTS + 1][5] = {
        [FIXED] = { { "a", PERFD_UNSIGNED, 1 }, { "b", PERFD_SIGNED, 2 } },
        [TEXTS] = { { "a", PERFD_UNSIGNED, 1 }, { "t", PERFD_TEXT, 1 }, { "c", PERFD_BOOL, 1 }, { "bytes", PERFD_BYTES, 8 } },
        [DYNAMIC] = { { "list", PERFD_UNSIGNED, 0 }, { "a", PERFD_POINTER, 1 }, { "t", PERFD_TEXT, 1 } },
        [LARGE] = { { "a", PERFD_UNSIGNED, 200 } },
};

static void add_descriptor(uint32_t id, const FieldSpec *specs) {
        Perfd__V1__EventDescriptor *m = malloc(sizeof(*m));
        const perfd_event *event;

        perfd__v1__event_descriptor__init(m);
        m->id = id;
        m->name = strdup("event");
        m->fields = calloc(5, sizeof(*m->fields));
        for (; specs[m->n_fields].name; m->n_fields++) {
                Perfd__V1__FieldDescriptor *f = m->fields[m->n_fields] = malloc(sizeof(*f));

                perfd__v1__field_descriptor__init(f);
                f->name = strdup(specs[m->n_fields].name);
                f->kind = (Perfd__V1__FieldKind)specs[m->n_fields].kind;
                f->count = specs[m->n_fields].count;
                f->size = 8;
        }
        assert_int_equal(descriptors_add(&descriptors, m, &event), 0);
}

static int setup(void **state) {
        descriptors = DESCRIPTORS_NULL;
        item = (struct perfd_item){ .descriptors = &descriptors };
        for (uint32_t id = 1; id <= EVENTS; id++)
                add_descriptor(id, fields[id]);
        return 0;
}

static int teardown(void **state) {
        item_deinit(&item);
        descriptors_deinit(&descriptors);
        return 0;
}

/* ---- an item, as protobuf-c packs it ------------------------------------------------------------------------------- */

typedef struct Made {
        Perfd__V1__Item m;
        uint64_t numbers[256], chain[8], faults[1];
        ProtobufCBinaryData texts[2];
        Perfd__V1__LostRecord lost;
        Perfd__V1__Weight weight;
        uint8_t bytes[4096];
        size_t n;
} Made;

static ProtobufCBinaryData make_text(void) {
        static char text[400];

        memset(text, 'x', sizeof(text));
        return (ProtobufCBinaryData){ .data = (uint8_t *)text, .len = next_random() % (next_random() % 8 ? 16 : sizeof(text)) };
}

static void make_fields(Made *made) {
        for (const FieldSpec *f = fields[made->m.event]; f->name; f++) {
                uint64_t count = f->count;

                if (f->kind >= PERFD_TEXT) {
                        made->texts[made->m.n_texts++] = make_text();
                        continue;
                }
                if (count == 0)
                        made->numbers[made->m.n_numbers++] = count = next_random() % 5;
                while (count-- > 0)
                        made->numbers[made->m.n_numbers++] = next_random() >> next_random() % 64;
        }
        made->m.numbers = made->numbers;
        made->m.texts = made->texts;
}

static void make_rest(Made *made) {
        uint64_t r = next_random();

        if (r & 1)
                made->m.raw = make_text();
        if (r & 2) {
                for (made->m.n_kernel_callchain = 1 + (r >> 8) % 7; made->m.n_user_callchain < made->m.n_kernel_callchain;)
                        made->chain[made->m.n_user_callchain++] = next_random();
                made->m.n_user_callchain = 0;
                made->m.kernel_callchain = made->chain;
        }
        if (r & 4)
                made->m.ip = next_random();
        if (r & 8)
                made->m.period = next_random();
        if (r & 16 && made->m.n_texts > 0) {
                made->faults[0] = 0;
                made->m.faults = made->faults;
                made->m.n_faults = 1;
        }
        if (r & 32) {
                perfd__v1__weight__init(&made->weight);
                made->weight.full = 1 + r;
                made->m.weight = &made->weight;
        }
}

static void make(Made *made) {
        uint64_t r = next_random();

        memset(made, 0, sizeof(*made));
        perfd__v1__item__init(&made->m);
        made->m.time = r % 16 ? next_random() : 0;
        made->m.event = 1 + (uint32_t)(r >> 8) % EVENTS;
        made->m.cpu = (uint32_t)(r >> 16) % 4;
        if (r >> 24 & 3)
                made->m.pid = made->m.tid = 1 + (uint32_t)(r >> 32);
        if ((r >> 20) % 16 == 0) { /* of the host, or of an event */
                perfd__v1__lost_record__init(&made->lost);
                made->lost.lost = r;
                made->m.record_case = PERFD__V1__ITEM__RECORD_LOST;
                made->m.lost = &made->lost;
                made->m.event = r >> 25 & 1 ? made->m.event : 0;
        } else
                make_fields(made);
        if ((r >> 28) % 4 == 0)
                make_rest(made);
        assert_true(perfd__v1__item__get_packed_size(&made->m) <= sizeof(made->bytes));
        made->n = perfd__v1__item__pack(&made->m, made->bytes);
}

/* Its fields in another order, that of repeated ones among themselves kept: which protobuf allows. */
static void shuffle(Made *made) {
        uint8_t turned[sizeof(made->bytes)];
        const size_t turn = 1 + next_random() % 6;
        WireField f = { .key = 0 };
        size_t n = 0, cut = 0, i = 0;
        Wire w = wire_of(made->bytes, made->n);

        while (i++ < turn && wire_next(&w, &f))
                if (f.key != WIRE_KEY(ITEM_TEXTS, WIRE_BYTES))
                        cut = (size_t)(w.at - made->bytes);
        memcpy(turned, made->bytes + cut, made->n - cut);
        n = made->n - cut;
        memcpy(turned + n, made->bytes, cut);
        memcpy(made->bytes, turned, made->n);
}

/* ---- what the accessors say of it ---------------------------------------------------------------------------------- */

static void check_value(const Made *made, size_t i, const perfd_value *v, size_t *number, size_t *text) {
        const FieldSpec *f = &fields[made->m.event][i];
        size_t count = f->count;

        assert_string_equal(v->field->name, f->name);
        if (f->kind >= PERFD_TEXT) {
                assert_int_equal(v->text.length, made->m.texts[*text].len);
                assert_memory_equal(v->text.bytes, made->m.texts[*text].data, v->text.length);
                assert_int_equal(v->fault, made->m.n_faults > 0 && *text == 0);
                ++*text;
                return;
        }
        if (count == 0)
                count = (size_t)made->numbers[(*number)++];
        assert_int_equal(v->count, count);
        assert_int_equal((uintptr_t)v->numbers % sizeof(uint64_t), 0);
        assert_memory_equal(v->numbers, made->numbers + *number, count * sizeof(uint64_t));
        *number += count;
}

static void check_fields(const Made *made) {
        size_t number = 0, text = 0, i;
        perfd_value values[5], v;

        for (i = 0; perfd_item_get(&item, i, &values[i]); i++)
                assert_non_null(fields[made->m.event][i].name);
        if (made->m.record_case == PERFD__V1__ITEM__RECORD__NOT_SET)
                assert_null(fields[made->m.event][i].name);
        else
                assert_int_equal(i, 0);
        for (size_t k = 0; k < i; k++) { /* all of them stay until the item is another */
                assert_true(perfd_item_find(&item, fields[made->m.event][k].name, &v));
                assert_ptr_equal(v.field, values[k].field);
                check_value(made, k, &values[k], &number, &text);
        }
        assert_false(perfd_item_find(&item, "none", &v));
}

static void check_head(const Made *made) {
        assert_int_equal(perfd_item_time(&item), made->m.time);
        assert_int_equal(perfd_item_cpu(&item), made->m.cpu);
        assert_int_equal(perfd_item_pid(&item), made->m.pid);
        assert_int_equal(perfd_item_tid(&item), made->m.tid);
        if (made->m.event != 0)
                assert_int_equal(perfd_item_event(&item)->id, made->m.event);
        else
                assert_null(perfd_item_event(&item));
}

static void check_rest(const Made *made) {
        const uint64_t *chain;

        assert_int_equal(perfd_item_record(&item), made->m.record_case == PERFD__V1__ITEM__RECORD_LOST ? PERFD_LOST : PERFD_SAMPLE);
        assert_int_equal(perfd_item_lost(&item), made->m.record_case == PERFD__V1__ITEM__RECORD_LOST ? made->lost.lost : 0);
        assert_int_equal(perfd_item_raw(&item).length, made->m.raw.len);
        assert_int_equal(perfd_item_callchain(&item, PERFD_CALLCHAIN_KERNEL, &chain), made->m.n_kernel_callchain);
        assert_memory_equal(chain, made->chain, made->m.n_kernel_callchain * sizeof(*chain));
        assert_int_equal(perfd_item_callchain(&item, PERFD_CALLCHAIN_USER, &chain), 0);
        assert_int_equal(perfd_item_ip(&item), made->m.ip);
        assert_int_equal(perfd_item_period(&item), made->m.period);
        assert_int_equal(perfd_item_weight(&item) ? perfd_item_weight(&item)->full : 0, made->m.weight ? made->weight.full : 0);
}

static void test_all_shapes(void **state) {
        static void (*const checks[])(const Made *made) = { check_fields, check_head, check_rest };
        static Made made;

        for (unsigned round = 0; round < ROUNDS; round++) {
                unsigned first = (unsigned)next_random() % 3;

                make(&made);
                if (next_random() % 4 == 0)
                        shuffle(&made);
                item_set(&item, made.bytes, made.bytes + made.n);
                for (unsigned i = 0; i < 3; i++)
                        checks[(first + i) % 3](&made);
                assert_int_equal(item.state, ITEM_INDEXED);
        }
}

/* Cut off anywhere, or with any byte changed: never an answer from outside, always one that can be. */
static void test_wrong_bytes(void **state) {
        static Made made;
        perfd_value v;

        for (unsigned round = 0; round < ROUNDS; round++) {
                size_t n, length = 0, i;
                uint8_t *bytes;

                make(&made);
                n = next_random() % 2 ? next_random() % (made.n + 1) : made.n;
                bytes = malloc(n + 1); /* as long as it is, for sanitizers and valgrind */
                memcpy(bytes, made.bytes, n);
                if (n > 0 && next_random() % 2)
                        bytes[next_random() % n] ^= (uint8_t)(1 << next_random() % 8);
                item_set(&item, bytes, bytes + n);
                for (i = 0; perfd_item_get(&item, i, &v); i++)
                        length += v.text.length + v.count * sizeof(uint64_t);
                assert_true(length <= n);
                if (item.state == ITEM_WRONG) {
                        assert_int_equal(item.error, PERFD_E_PROTOCOL);
                        assert_int_equal(perfd_item_record(&item), PERFD_UNKNOWN);
                        assert_int_equal(perfd_item_unknown_record(&item)->bytes.length, 0);
                        assert_null(perfd_item_event(&item));
                        assert_int_equal(perfd_item_time(&item), 0);
                        assert_int_equal(i, 0);
                }
                free(bytes);
        }
}

/* Raw bytes alone, as a recorder has them, of lengths that need one byte, two and three, and what may follow; cut off they are no item. */
static void test_raw(void **state) {
        static const size_t lengths[] = { 0, 1, 127, 128, 16383, 16384, 60000 };
        static uint8_t raw[60000], bytes[sizeof(raw) + 256];
        Perfd__V1__Item m = PERFD__V1__ITEM__INIT;

        add_descriptor(EVENTS + 1, (FieldSpec[]){ { .name = NULL } });
        for (size_t i = 0; i < sizeof(raw); i++)
                raw[i] = (uint8_t)next_random();
        m.time = 5;
        m.event = EVENTS + 1;
        m.cpu = m.pid = m.tid = 3;
        for (size_t i = 0; i < 2 * sizeof(lengths) / sizeof(lengths[0]); i++) {
                size_t n;

                m.raw = (ProtobufCBinaryData){ .data = raw, .len = lengths[i / 2] };
                m.period = i % 2 * 77;
                n = perfd__v1__item__pack(&m, bytes);
                item_set(&item, bytes, bytes + n);
                assert_int_equal(perfd_item_raw(&item).length, m.raw.len);
                assert_memory_equal(perfd_item_raw(&item).bytes, raw, m.raw.len);
                assert_int_equal(perfd_item_period(&item), m.period);
                assert_int_equal(perfd_item_tid(&item), 3);
                assert_int_equal(item.state, ITEM_INDEXED);
                if (m.raw.len == 0)
                        continue;
                item_set(&item, bytes, bytes + n - 1);
                assert_int_equal(perfd_item_raw(&item).length, 0);
                assert_int_equal(item.state, ITEM_WRONG);
                assert_int_equal(item.error, PERFD_E_PROTOCOL);
        }
}

/* Nothing at all, behind an item of each event. */
static void test_empty(void **state) {
        static Made made;
        perfd_value v;

        for (unsigned round = 0; round < ROUNDS / 100; round++) {
                uint8_t *nothing = malloc(1);

                make(&made);
                item_set(&item, made.bytes, made.bytes + made.n);
                check_head(&made);
                item_set(&item, nothing + 1, nothing + 1);
                assert_false(perfd_item_get(&item, 0, &v));
                assert_int_equal(item.error, PERFD_E_PROTOCOL);
                free(nothing);
        }
}

/* In memory that is shared, another may write: what is read then are other values, from the places that were checked. */
static void test_bytes_that_change(void **state) {
        static Made made;
        perfd_value v;

        for (unsigned round = 0; round < ROUNDS; round++) {
                uint64_t sum = 0;
                uint8_t *bytes;

                make(&made);
                bytes = malloc(made.n + 1);
                memcpy(bytes, made.bytes, made.n);
                item_set(&item, bytes, bytes + made.n);
                check_head(&made);
                memset(bytes, (int)next_random(), made.n);
                for (size_t i = 0; perfd_item_get(&item, i, &v); i++) {
                        for (size_t k = 0; k < v.count; k++)
                                sum += v.numbers[k];
                        for (size_t k = 0; k < v.text.length; k++)
                                sum += (uint8_t)v.text.bytes[k];
                }
                check_head(&made); /* was read before */
                free(bytes);
        }
}

/* The same event with other fields: what was learned of it is forgotten. */
static void test_descriptor_changes(void **state) {
        static Made made;
        perfd_value v;

        do
                make(&made);
        while (made.m.event != FIXED || made.m.record_case != PERFD__V1__ITEM__RECORD__NOT_SET);
        for (int i = 0; i < 2; i++) {
                item_set(&item, made.bytes, made.bytes + made.n);
                check_fields(&made);
        }
        add_descriptor(FIXED, fields[DYNAMIC]);
        item_set(&item, made.bytes, made.bytes + made.n);
        assert_false(perfd_item_get(&item, 0, &v));
        assert_int_equal(item.error, PERFD_E_PROTOCOL);
        add_descriptor(FIXED, fields[FIXED]);
        item_set(&item, made.bytes, made.bytes + made.n);
        check_fields(&made);
        descriptors_remove(&descriptors, FIXED);
        item_set(&item, made.bytes, made.bytes + made.n);
        assert_null(perfd_item_event(&item));
        assert_int_equal(item.error, PERFD_E_PROTOCOL);
        add_descriptor(FIXED, fields[FIXED]);
}

/* Never beyond its room, and always the length of the whole. */
static void test_render(void **state) {
        static const uint64_t numbers[] = { 1, UINT64_MAX };
        static const perfd_value_name names[] = { { 1, "ONE" }, { UINT32_MAX, "ALL" } };
        perfd_field f = { .name = "f", .kind = PERFD_SIGNED, .size = 4, .count = 2, .values = names, .n_values = 2,
                          .delimiter = "" };
        perfd_value v = { .field = &f, .numbers = numbers, .count = 2 };
        char text[24] = "untouched";

        assert_int_equal(perfd_value_render(&v, text, 0), 9);
        assert_string_equal(text, "untouched");
        assert_int_equal(perfd_value_render(&v, text, 6), 9);
        assert_string_equal(text, "{ONE,");
        assert_int_equal(perfd_value_render(&v, text, sizeof(text)), 9);
        assert_string_equal(text, "{ONE,ALL}");
        f.n_values = 0;
        assert_int_equal(perfd_value_render(&v, text, sizeof(text)), 6);
        assert_string_equal(text, "{1,-1}");
        f.hex = true;
        (void)perfd_value_render(&v, text, sizeof(text));
        assert_string_equal(text, "{0x1,0xffffffff}");
        assert_int_equal(perfd_field_render(&f, 1, text, sizeof(text)), 0);
        assert_string_equal(text, "");
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_all_shapes),
                cmocka_unit_test(test_wrong_bytes),
                cmocka_unit_test(test_raw),
                cmocka_unit_test(test_empty),
                cmocka_unit_test(test_bytes_that_change),
                cmocka_unit_test(test_descriptor_changes),
                cmocka_unit_test(test_render),
        };

        return cmocka_run_group_tests(tests, setup, teardown);
}
