/*
 * Lines made by a plan are, byte for byte, those made from the event's description: for fields of each kind, names that need
 * escapes, numbers of all lengths, texts with each byte; also after an event was described anew, or removed.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

#include <cmocka.h>

#include "client/perfctl/item/print.h"
#include "tests/unit/played-stream.h"

#define EVENTS 300
#define KINDS 16
#define TEXT_MAX 64

typedef struct Kind {
        const char *name;
        Perfd__V1__FieldKind kind;
        uint32_t size, count;
        bool hex, flags, has_values;
} Kind;

#define UNSIGNED PERFD__V1__FIELD_KIND__FIELD_KIND_UNSIGNED
#define SIGNED PERFD__V1__FIELD_KIND__FIELD_KIND_SIGNED
#define POINTER PERFD__V1__FIELD_KIND__FIELD_KIND_POINTER
#define BOOL PERFD__V1__FIELD_KIND__FIELD_KIND_BOOL
#define TEXT PERFD__V1__FIELD_KIND__FIELD_KIND_TEXT
#define BYTES PERFD__V1__FIELD_KIND__FIELD_KIND_BYTES

static const Kind kinds[KINDS] = {
        { "u64", UNSIGNED, 8, 1 }, { "int", SIGNED, 4, 1 }, { "pointer", POINTER, 8, 1 }, { "bool", BOOL, 1, 1 },
        { "hex", UNSIGNED, 4, 1, .hex = true }, { "flags", UNSIGNED, 4, 1, .flags = true, .has_values = true },
        { "enum", SIGNED, 4, 1, .has_values = true }, { "text", TEXT, 1, 16 }, { "array", UNSIGNED, 8, 3 },
        { "ints", SIGNED, 4, 2 }, { "bytes", BYTES, 1, 4 }, { "named pointer", POINTER, 8, 1, .has_values = true },
        { "__kernels", UNSIGNED, 8, 1 }, { "odd \"=\\\xff\x1bname", UNSIGNED, 8, 1 }, { "text2", TEXT, 1, 0 }, { "enums", UNSIGNED, 4, 2, .has_values = true },
};

typedef struct Printed {
        Output planned, plain;
} Printed;

/* What was printed of the items so far, with and without plans. */
typedef struct Printer {
        perfd_client *client;
        int daemon;
        uint64_t sequence;
        ItemPlans text_plans, kernels_plans, json_plans;
        ItemPlans unnumbered; /* of JSON with frames, whose callchains are written anew each time */
        const NamedFrame *frames; /* of the item; NULL: without names */
        size_t n_frames;
        uint64_t number; /* of them */
        Printed text, kernels, json;
        uint64_t n_items;
} Printer;

static void print(Printer *p, ItemPlans *plans, Printed *to, const perfd_item *item) {
        for (int is_plain = 0; is_plain < 2; is_plain++) {
                Kallsyms symbols = KALLSYMS_NULL;
                ItemText t = { .out = is_plain ? &to->plain : &to->planned, .plans = is_plain ? NULL : plans, .symbols = &symbols,
                               .time.form = TIME_CLOCK, .has_heading = true, .has_kernels = plans == &p->kernels_plans,
                               .frames = p->frames, .n_frames = p->n_frames };

                plans->frames = p->unnumbered.frames = p->frames;
                plans->n_frames = p->unnumbered.n_frames = p->n_frames;
                plans->frames_number = p->number;
                plans->has_frames = p->frames;
                if (plans == &p->json_plans)
                        item_print_json(t.out, is_plain && p->frames ? &p->unnumbered : t.plans, item, perfd_item_time(item) + 1, p->n_items % 5 == 0);
                else
                        item_print_text(&t, item);
        }
        assert_int_equal(to->planned.n, to->plain.n);
        assert_memory_equal(to->planned.bytes, to->plain.bytes, to->plain.n);
        assert_int_equal(to->planned.n_flushed, 0);
}

static void on_item(void *userdata, const perfd_item *item) {
        Printer *p = userdata;

        p->text.planned.n = p->text.plain.n = p->kernels.planned.n = p->kernels.plain.n = p->json.planned.n = p->json.plain.n = 0;
        print(p, &p->text_plans, &p->text, item);
        print(p, &p->kernels_plans, &p->kernels, item);
        print(p, &p->json_plans, &p->json, item);
        p->n_items++;
}

static void forget(Printer *p, uint32_t id) {
        item_plans_forget(&p->text_plans, id);
        item_plans_forget(&p->kernels_plans, id);
        item_plans_forget(&p->json_plans, id);
}

static void on_event(void *userdata, const perfd_event *event) {
        forget(userdata, event->id);
}

static void on_removed(void *userdata, uint32_t id, const char *name) {
        forget(userdata, id);
}

static void process(Printer *p, uint64_t n_items) {
        p->n_items = 0;
        assert_int_equal(perfd_client_process(p->client), 0);
        assert_int_equal(p->n_items, n_items);
}

static int set_up(void **state) {
        perfd_subscription s = PERFD_SUBSCRIPTION_INIT;
        perfd_callbacks callbacks = PERFD_CALLBACKS_INIT;
        Printer *p = calloc(1, sizeof(*p));
        int fds[2];

        if (!p || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) < 0)
                return -1;
        *state = p;
        p->daemon = fds[1];
        p->client = perfd_client_new("test");
        p->kernels_plans.form = ITEM_FORM_TEXT_KERNELS;
        p->json_plans.form = p->unnumbered.form = ITEM_FORM_JSON;
        p->unnumbered.has_frames = true;
        callbacks.item = on_item;
        callbacks.event = on_event;
        callbacks.removed = on_removed;
        play_hello(p->daemon, 1);
        play_ok(p->daemon, 2);
        if (perfd_client_connect_fd(p->client, fds[0]) != 0 || perfd_subscribe(p->client, &s, &callbacks, p) != 0)
                return -1;
        play_start(p->daemon);
        p->sequence = 1;
        process(p, 0);
        return 0;
}

static int tear_down(void **state) {
        Printer *p = *state;

        item_plans_deinit(&p->text_plans);
        item_plans_deinit(&p->kernels_plans);
        item_plans_deinit(&p->json_plans);
        item_plans_deinit(&p->unnumbered);
        perfd_client_free(p->client);
        close(p->daemon);
        free(p);
        return 0;
}

/* An event with the `n` kinds from `first` on. */
static void play_event(Printer *p, uint32_t id, const char *name, size_t first, size_t n) {
        Perfd__V1__Packet packet = PERFD__V1__PACKET__INIT;
        Perfd__V1__EventDescriptor d = PERFD__V1__EVENT_DESCRIPTOR__INIT, *events[] = { &d };
        Perfd__V1__FieldDescriptor fields[KINDS], *list[KINDS];
        Perfd__V1__FieldValue values[3], *value_list[] = { &values[0], &values[1], &values[2] };

        play_value(&values[0], 1, "ONE");
        play_value(&values[1], 2, "TWO \"2\"");
        play_value(&values[2], UINT64_MAX, "LAST");
        for (size_t i = 0; i < n; i++) {
                const Kind *k = &kinds[(first + i) % KINDS];

                perfd__v1__field_descriptor__init(&fields[i]);
                fields[i].name = (char *)k->name;
                fields[i].type = (char *)"";
                fields[i].kind = k->kind;
                fields[i].size = k->size;
                fields[i].count = k->count;
                fields[i].hex = k->hex;
                fields[i].flags = k->flags;
                fields[i].delimiter = (char *)"|";
                fields[i].values = value_list;
                fields[i].n_values = k->has_values ? 3 : 0;
                list[i] = &fields[i];
        }
        d.id = id;
        d.name = d.event = (char *)name;
        d.fields = list;
        d.n_fields = n;
        packet.sequence = ++p->sequence;
        packet.events = events;
        packet.n_events = 1;
        play_packet(p->daemon, &packet);
}

typedef struct PlayedItem {
        Perfd__V1__Item message;
        uint64_t numbers[3 * KINDS], faults[1], kernel[2];
        ProtobufCBinaryData texts[KINDS];
} PlayedItem;

static void item_init(PlayedItem *item, uint32_t id, size_t first, size_t n, uint64_t number, const char *text, size_t length) {
        Perfd__V1__Item *m = &item->message;

        perfd__v1__item__init(m);
        m->event = id;
        m->time = 5000000000 + number % 1000000007;
        m->cpu = (uint32_t)number % 300;
        m->pid = 10;
        m->tid = 11;
        m->numbers = item->numbers;
        m->texts = item->texts;
        for (size_t i = 0; i < n; i++) {
                const Kind *k = &kinds[(first + i) % KINDS];

                if (k->kind == TEXT || k->kind == BYTES)
                        item->texts[m->n_texts++] = play_text(text, length);
                else
                        for (size_t c = 0; c < k->count; c++)
                                item->numbers[m->n_numbers++] = number + c;
        }
}

static void play_item(Printer *p, Perfd__V1__Item *item) {
        Perfd__V1__Packet packet = PERFD__V1__PACKET__INIT;

        packet.sequence = ++p->sequence;
        packet.items = &item;
        packet.n_items = 1;
        play_packet(p->daemon, &packet);
        process(p, 1);
}

/* What a line is, once and for all. */
static void test_expected(void **state) {
        Printer *p = *state;
        PlayedItem item;

        play_event(p, 9, "all:kinds", 0, KINDS);
        item_init(&item, 9, 0, KINDS, 1, "a b", 3);
        play_item(p, &item.message);
        p->text.planned.bytes[p->text.planned.n] = p->json.planned.bytes[p->json.planned.n] = '\0';
        assert_string_equal(p->text.planned.bytes,
                            "5.000000001\t1\ta b-10/11\tall:kinds\tu64=1 int=1 pointer=0x1 bool=1 hex=0x1 flags=ONE enum=ONE text=\"a b\" "
                            "array={1,2,3} ints={1,2} bytes=612062 named pointer=ONE odd \"=\\\\\\xff\\x1bname=1 text2=\"a b\" enums={ONE,TWO \"2\"}\n");
        assert_string_equal(p->json.planned.bytes,
                            "{\"kind\":\"sample\",\"time\":5000000001,\"wall\":5000000002,\"event\":\"all:kinds\",\"kernel_event\":\"all:kinds\",\"cpu\":1,\"pid\":10,\"tid\":11,\"comm\":\"a b\","
                            "\"exe\":\"/bin/a\",\"uid\":0,\"cgroup\":\"/pod/x.service\",\"container\":\"0123456789ab\","
                            "\"runtime\":\"docker\",\"unit\":\"x.service\",\"fields\":{\"u64\":1,\"int\":1,\"pointer\":1,\"bool\":true,"
                            "\"hex\":1,\"flags\":1,\"enum\":1,\"text\":\"a b\",\"array\":[1,2,3],\"ints\":[1,2],\"bytes\":\"612062\","
                            "\"named pointer\":1,\"__kernels\":1,\"odd \\\"=\\\\\\uefff\\u001bname\":1,\"text2\":\"a b\",\"enums\":[1,2]},"
                            "\"names\":{\"flags\":\"ONE\",\"enum\":\"ONE\",\"named pointer\":\"ONE\",\"enums\":[\"ONE\",\"TWO \\\"2\\\"\"]},\"raw\":\"\"}\n");
}

/* Each kind alone and with others, with numbers of all lengths and texts of all bytes. */
static void test_kinds(void **state) {
        Printer *p = *state;
        char text[TEXT_MAX];
        uint64_t random = 88172645463325252;

        for (size_t n = 0; n <= KINDS; n++)
                for (size_t first = 0; first < KINDS; first++) {
                        play_event(p, 9, first % 2 ? "an \"event\"\\" : "group:event", first, n);
                        process(p, 0);
                        for (size_t i = 0; i < 24; i++) {
                                PlayedItem item;
                                size_t length = random % (TEXT_MAX + 1);

                                for (size_t k = 0; k < length; k++) {
                                        random ^= random << 13;
                                        random ^= random >> 7;
                                        random ^= random << 17;
                                        text[k] = i < 8 ? (char)random : (char)('a' + random % 26);
                                }
                                item_init(&item, 9, first, n, i < 2 ? i - 1 : random >> (random >> 20) % 64, text, length);
                                play_item(p, &item.message);
                        }
                }
}

/* Parts that few items have, tasks without a number, items of no event and side records. */
static void test_parts(void **state) {
        Printer *p = *state;

        play_event(p, 9, "group:event", 6, 3);
        process(p, 0);
        for (int part = 0; part < 11; part++) {
                Perfd__V1__LostRecord lost = PERFD__V1__LOST_RECORD__INIT;
                PlayedItem item;

                item_init(&item, 9, 6, 3, 7, "text", part == 2 ? 0 : 4);
                item.kernel[0] = 0xffffffff81000000;
                item.message.tid = part == 0 ? 0 : part == 1 ? UINT32_MAX : 11;
                item.message.pid = part == 0 ? 0 : part == 1 ? UINT32_MAX : 10;
                item.message.faults = item.faults;
                item.message.n_faults = part == 2;
                item.faults[0] = 0;
                item.message.kernel_callchain = item.kernel;
                item.message.n_kernel_callchain = part == 3;
                item.message.period = part == 4;
                item.message.ip = part == 5;
                item.message.address = part == 6;
                item.message.raw = play_text("\1\2", part == 7 ? 2 : 0);
                item.message.id = part >= 9 ? UINT64_MAX : 0;
                item.message.stream_id = part == 10 ? 78 : 0;
                if (part == 8) {
                        item.message.event = 0;
                        item.message.n_numbers = item.message.n_texts = 0;
                        item.message.record_case = PERFD__V1__ITEM__RECORD_LOST;
                        item.message.lost = &lost;
                }
                play_item(p, &item.message);
        }
}

/* The thread is called otherwise from now on. */
static void play_name(Printer *p, uint32_t tid, const char *name, size_t length) {
        Perfd__V1__Packet packet = PERFD__V1__PACKET__INIT;
        PlayedTask task;
        Perfd__V1__Task *tasks[] = { &task.message };

        play_task_init(&task);
        task.message.tid = tid;
        task.message.comm = play_text(name, length);
        packet.sequence = ++p->sequence;
        packet.tasks = tasks;
        packet.n_tasks = 1;
        play_packet(p->daemon, &packet);
        process(p, 0);
}

/* Who, and what is behind the fields, repeats itself in part: each part of it may be the one that differs from what was written before. */
static void test_repeated_parts(void **state) {
        static const char *const names[] = { "a", "b", "fifteen letters", "exactly sixteen.", "seventeen letters", "\x1b\\\"", "" };
        Printer *p = *state;
        uint64_t random = 88172645463325252;

        play_event(p, 9, "group:event", 6, 3);
        process(p, 0);
        for (size_t i = 0; i < 3000; i++) {
                PlayedItem item;

                random ^= random << 13;
                random ^= random >> 7;
                random ^= random << 17;
                if (i % 10 == 0)
                        play_name(p, 11 + (uint32_t)(random >> 20) % 2, names[i / 10 % 7], strlen(names[i / 10 % 7]));
                item_init(&item, 9, 6, 3, 7, "text", 4);
                item.message.cpu = random % 2;
                item.message.pid = random >> 1 & 1 ? 10 : 12;
                item.message.tid = random >> 2 & 1 ? 11 : 12;
                item.message.period = random >> 3 & 1;
                item.message.ip = (random >> 4 & 1) * UINT64_C(0xffffffff81000000);
                item.message.address = (random >> 5 & 1) * UINT64_MAX;
                item.message.id = (random >> 6 & 1) * UINT64_MAX;
                item.message.stream_id = (random >> 7 & 1) * UINT64_MAX;
                play_item(p, &item.message);
        }
}

#define LONG_NAME ((size_t)9000) /* longer than what is kept of a callchain */

/* Callchains that have a number are written as if they had none: the first time, again, and behind another one that takes their place. */
static void test_numbered_callchains(void **state) {
        static const uint64_t numbers[] = { 1, 2, 1, 1, 2049, 1, 2049, 0, 4097, 3, 3, 2 };
        Printer *p = *state;
        char *longer = malloc(LONG_NAME);
        FrameName names[4];
        NamedFrame frames[2];

        assert_non_null(longer);
        memset(longer, 'x', LONG_NAME);
        for (size_t i = 0; i < 4; i++)
                names[i] = (FrameName){ .symbol = { .bytes = longer, .length = i == 3 ? LONG_NAME : 10 + i }, .dso = { .bytes = "file", .length = i },
                                        .note = "" };
        play_event(p, 9, "group:event", 6, 3);
        process(p, 0);
        for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
                const FrameName *name = &names[numbers[i] < 4 ? numbers[i] : numbers[i] == 4097];
                PlayedItem item;

                frames[0] = (NamedFrame){ .ip = 0xffffffff81000000 + numbers[i], .name = name, .offset = numbers[i], .is_kernel = true };
                frames[1] = (NamedFrame){ .ip = 0xffffffff81000100, .name = &names[1], .is_kernel = true };
                item_init(&item, 9, 6, 3, 7, "text", 4);
                item.kernel[0] = frames[0].ip;
                item.kernel[1] = frames[1].ip;
                item.message.kernel_callchain = item.kernel;
                item.message.n_kernel_callchain = 2;
                p->frames = frames;
                p->n_frames = 2;
                p->number = numbers[i];
                play_item(p, &item.message);
        }
        free(longer);
}

/* Many events; half of them are removed and described anew, with other fields under the same id. */
static void test_events(void **state) {
        Printer *p = *state;
        char name[32];

        for (uint32_t round = 0; round < 3; round++) {
                for (uint32_t id = 100; id < 100 + EVENTS; id += 1 + round % 2) {
                        (void)snprintf(name, sizeof(name), "event:%u-%u", id, round);
                        play_event(p, id, name, id + round, 1 + id % 5);
                        process(p, 0);
                }
                for (uint32_t id = 100; id < 100 + EVENTS; id++) {
                        size_t first = id + (round == 1 && id % 2 ? 0 : round);
                        PlayedItem item;

                        item_init(&item, id, first, 1 + id % 5, id, "word", 4);
                        play_item(p, &item.message);
                }
                for (uint32_t id = 100; id < 100 + EVENTS && round == 1; id += 2) {
                        Perfd__V1__Packet packet = PERFD__V1__PACKET__INIT;
                        Perfd__V1__EventRef ref = PERFD__V1__EVENT_REF__INIT, *refs[] = { &ref };

                        ref.id = id;
                        ref.name = (char *)"gone";
                        packet.sequence = ++p->sequence;
                        packet.removed = refs;
                        packet.n_removed = 1;
                        play_packet(p->daemon, &packet);
                        process(p, 0);
                }
        }
        assert_true(p->json_plans.n >= EVENTS && 2 * p->json_plans.n <= p->json_plans.room);
}

/* A name that no plan has room for. */
static void test_long_name(void **state) {
        Printer *p = *state;
        PlayedItem item;
        char *name = malloc(20001);

        assert_non_null(name);
        memset(name, 'x', 20000);
        name[20000] = '\0';
        play_event(p, 9, name, 0, KINDS);
        item_init(&item, 9, 0, KINDS, 1, "a", 1);
        play_item(p, &item.message);
        assert_null(p->json_plans.last->name);
        free(name);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_expected, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_kinds, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_parts, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_repeated_parts, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_numbered_callchains, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_events, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_long_name, set_up, tear_down),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
