/* `watch` as a process, whose daemon is played on a socket: how it shows each side record, and each part that a sample can have. */
#include "tests/unit/perfctl-rig.h"
#include "tests/unit/played-stream.h"

#define ITEMS_MAX 24
#define TEXT(text) { .len = sizeof(text) - 1, .data = (uint8_t *)(text) }

typedef struct Shown {
        Perfd__V1__Item item;
        const char *json, *text; /* of its line, what is its own */
} Shown;

/* What every sample of the event has. */
static void add_fields(Perfd__V1__Item *item) {
        Perfd__V1__Item whole;

        play_item_init(&whole, item->time);
        item->event = whole.event;
        item->pid = whole.pid;
        item->tid = whole.tid;
        item->numbers = whole.numbers;
        item->n_numbers = whole.n_numbers;
        item->texts = whole.texts;
        item->n_texts = whole.n_texts;
}

/* Each of these is shown, in order. */
static void check_shown(Shown *list, size_t n, bool json) {
        Perfd__V1__Packet packet = PERFD__V1__PACKET__INIT;
        Perfd__V1__Item *items[ITEMS_MAX];
        const char *at;
        Ran r;

        assert_in_range(n, 1, ITEMS_MAX);
        for (size_t i = 0; i < n; i++) {
                list[i].item.time = 5000000100 + i;
                list[i].item.cpu = 1;
                if (list[i].item.record_case == PERFD__V1__ITEM__RECORD__NOT_SET)
                        add_fields(&list[i].item);
                items[i] = &list[i].item;
        }
        packet.sequence = 2;
        packet.items = items;
        packet.n_items = n;
        run_start(&r, json ? WORDS("watch", "--no-symbols", "--json") : WORDS("watch", "--no-symbols"));
        run_greet(&r);
        play_request_free(play_request(r.daemon));
        play_ok(r.daemon, 2);
        play_start(r.daemon);
        play_packet(r.daemon, &packet);
        play_end(r.daemon, 3, n, 0);
        run_end(&r);
        at = r.text;
        for (size_t i = 0; i < n; i++) {
                const char *own = json ? list[i].json : list[i].text, *found = strstr(at, own);

                if (!found)
                        fail_msg("\"%s\" is not here: %.700s%s", own, at, r.message);
                at = found + strlen(own);
        }
}

#define ITEM .base = PROTOBUF_C_MESSAGE_INIT(&perfd__v1__item__descriptor)
#define RECORD(name, NAME, type, TYPE, ...)                                                                            \
        { ITEM, .record_case = PERFD__V1__ITEM__RECORD_##NAME,                                                         \
          .name = &(Perfd__V1__##type){ .base = PROTOBUF_C_MESSAGE_INIT(&perfd__v1__##TYPE##__descriptor), __VA_ARGS__ } }

static Perfd__V1__Namespace network = { .base = PROTOBUF_C_MESSAGE_INIT(&perfd__v1__namespace__descriptor), .dev = 4, .inode = 0x99 };
static Perfd__V1__Namespace *namespaces[] = { &network };
static Perfd__V1__ReadValue half = { .base = PROTOBUF_C_MESSAGE_INIT(&perfd__v1__read_value__descriptor), .value = 500,
                                     .enabled = 200, .running = 100, .lost = 3 };
static Perfd__V1__ReadValue *values[] = { &half };
static Perfd__V1__ReadValues read_values = { .base = PROTOBUF_C_MESSAGE_INIT(&perfd__v1__read_values__descriptor), .n_values = 1,
                                             .values = values };

static Shown records[] = {
        { RECORD(comm_record, COMM_RECORD, CommRecord, comm_record, .pid = 5, .tid = 6, .comm = TEXT("a\001"), .exec = true),
          "{\"kind\":\"comm\"", "pid=5 tid=6 comm=a\\x01 exec=1" },
        { RECORD(fork, FORK, TaskRecord, task_record, .pid = 7, .ppid = 5, .tid = 8, .ptid = 6),
          "\"pid\":7,\"ppid\":5,\"tid\":8,\"ptid\":6", "pid=7 ppid=5 tid=8 ptid=6" },
        { RECORD(exit, EXIT, TaskRecord, task_record, .pid = 9, .ppid = 5, .tid = 10, .ptid = 6),
          "\"pid\":9,\"ppid\":5,\"tid\":10,\"ptid\":6", "pid=9 ppid=5 tid=10 ptid=6" },
        { RECORD(mmap2, MMAP2, Mmap2Record, mmap2_record, .pid = 5, .tid = 5, .addr = 4096, .len = 8192, .prot = 5,
                 .build_id = TEXT("\xab\xcd"), .filename = TEXT("/bin/a")),
          "\"addr\":4096,\"len\":8192,\"pgoff\":0,\"maj\":0,\"min\":0,\"ino\":0,\"ino_generation\":0,\"build_id\":\"abcd\",\"prot\":5",
          "addr=0x1000 len=0x2000 pgoff=0x0 prot=5 filename=/bin/a" },
        { RECORD(lost, LOST, LostRecord, lost_record, .lost = 11), "\"lost\":11", "lost=11" },
        { RECORD(lost_samples, LOST_SAMPLES, LostSamplesRecord, lost_samples_record, .lost = 12), "\"lost\":12", "lost=12" },
        { RECORD(throttle, THROTTLE, ThrottleRecord, throttle_record, .stream_id = 13), "\"stream_id\":13", "stream=13" },
        { RECORD(unthrottle, UNTHROTTLE, ThrottleRecord, throttle_record, .stream_id = 14), "\"stream_id\":14", "stream=14" },
        { RECORD(switch_, SWITCH, SwitchRecord, switch_record, .out = true, .preempted = true, .cpu_wide = true, .next_prev_pid = 3,
                 .next_prev_tid = 4),
          "\"out\":true,\"preempted\":true,\"next_prev_pid\":3,\"next_prev_tid\":4", " out preempted next_pid=3 next_tid=4" },
        { RECORD(namespaces, NAMESPACES, NamespacesRecord, namespaces_record, .pid = 5, .tid = 6, .n_namespaces = 1,
                 .namespaces = namespaces),
          "\"namespaces\":[{\"name\":\"net\",\"dev\":4,\"inode\":153}]", "pid=5 tid=6 net=4/0x99" },
        { RECORD(ksymbol, KSYMBOL, KsymbolRecord, ksymbol_record, .addr = 0xffffffff81000000, .len = 16, .type = 1, .flags = 1,
                 .name = TEXT("bpf_prog")),
          "\"addr\":\"0xffffffff81000000\",\"len\":16,\"type\":1,\"unregister\":true,\"flags\":1,\"name\":\"bpf_prog\"",
          "addr=0xffffffff81000000 len=0x10 type=1 flags=0x1 name=bpf_prog" },
        { RECORD(bpf_event, BPF_EVENT, BpfEventRecord, bpf_event_record, .type = 1, .id = 17, .tag = TEXT("\1\2")),
          "\"type\":1,\"flags\":0,\"id\":17,\"tag\":\"0102\"", "type=1 flags=0 id=17 tag=0102" },
        { RECORD(cgroup, CGROUP, CgroupRecord, cgroup_record, .id = 18, .path = TEXT("/a.slice")),
          "\"id\":18,\"path\":\"/a.slice\"", "id=18 path=/a.slice" },
        { RECORD(text_poke, TEXT_POKE, TextPokeRecord, text_poke_record, .addr = 0x1000, .old_bytes = TEXT("\x90"),
                 .new_bytes = TEXT("\xcc")),
          "\"addr\":\"0x1000\",\"old_bytes\":\"90\",\"new_bytes\":\"cc\"", "addr=0x1000 old=90 new=cc" },
        { RECORD(aux, AUX, AuxRecord, aux_record, .offset = 1, .size = 2, .flags = 3), "\"offset\":1,\"size\":2,\"flags\":3",
          "offset=0x1 size=0x2 flags=0x3" },
        { RECORD(itrace_start, ITRACE_START, ItraceStartRecord, itrace_start_record, .pid = 21, .tid = 22), "\"pid\":21,\"tid\":22",
          "pid=21 tid=22" },
        { RECORD(aux_output_hw_id, AUX_OUTPUT_HW_ID, AuxOutputHwIdRecord, aux_output_hw_id_record, .hw_id = 0x23),
          "\"hw_id\":\"0x23\"", "hw_id=0x23" },
        { RECORD(read, READ, ReadRecord, read_record, .pid = 24, .tid = 25, .values = &read_values),
          "\"value\":500,\"enabled\":200,\"running\":100,\"lost\":3", "500(50.0%)" },
        { RECORD(unknown, UNKNOWN, UnknownRecord, unknown_record, .type = 99, .misc = 2, .bytes = TEXT("\1")),
          "\"type\":99,\"misc\":2,\"bytes\":\"01\"", "type=99 misc=0x2 bytes=01" },
};

/* ---- parts of samples -------------------------------------------------------------------------------------------- */

#define PART(type, TYPE, ...) &(Perfd__V1__##type){ .base = PROTOBUF_C_MESSAGE_INIT(&perfd__v1__##TYPE##__descriptor), __VA_ARGS__ }

static uint64_t registers[] = { 0x11, 0x22 };
static Perfd__V1__Branch branch = { .base = PROTOBUF_C_MESSAGE_INIT(&perfd__v1__branch__descriptor), .from = 0x10, .to = 0x20,
                                    .predicted = true, .abort = true, .cycles = 7, .type = 1, .counters = 0x5 };
static Perfd__V1__Branch *branches[] = { &branch };

static Shown samples[] = {
        { { ITEM, .read_values = &read_values }, "\"value\":500,\"enabled\":200,\"running\":100,\"lost\":3", "500(50.0%)" },
        { { ITEM, .n_branches = 1, .branches = branches, .branch_hw_index = 4 },
          "\"branches\":[{\"from\":\"0x10\",\"to\":\"0x20\",\"mispredicted\":false,\"predicted\":true,\"in_transaction\":false,"
          "\"abort\":true,\"cycles\":7,\"type\":1,", "0x10/0x20/P/-/A/7/COND" },
        { { ITEM, .user_registers = PART(Registers, registers, .abi = 2, .mask = 0x3, .n_values = 2, .values = registers,
                                           .machine = 62) },
          "\"user_registers\":{\"abi\":2,\"values\":{\"AX\":\"0x11\",\"BX\":\"0x22\"}}", "ABI:2 AX:0x11 BX:0x22" },
        { { ITEM, .interrupt_registers = PART(Registers, registers, .abi = 2, .mask = 0x3, .n_values = 2, .values = registers,
                                                .machine = 1) },
          "\"interrupt_registers\":{\"abi\":2,\"values\":{\"0\":\"0x11\",\"1\":\"0x22\"}}", "ABI:2 0:0x11 1:0x22" },
        { { ITEM, .user_stack = TEXT("\1\2\3\4\5\6\7\10") }, "\"user_stack\":\"0102030405060708\"", "user stack\t+0000 0102030405060708" },
        { { ITEM, .weight = PART(Weight, weight, .full = 9) }, "\"weight\":{\"full\":9,\"var1\":0,\"var2\":0,\"var3\":0}",
          "weight=9" },
        { { ITEM, .weight = PART(Weight, weight, .var1 = 1, .var2 = 2, .var3 = 3) },
          "\"weight\":{\"full\":0,\"var1\":1,\"var2\":2,\"var3\":3}", "weight=1,2,3" },
        { { ITEM, .data_source = PART(DataSource, data_source, .raw = 0x68100142, .op = 2) },
          "\"data_source\":{\"raw\":\"0x68100142\",\"op\":2,", "68100142" },
        { { ITEM, .transaction = PART(Transaction, transaction, .flags = 1, .abort_code = 0x7) },
          "\"transaction\":{\"flags\":1,", "abort_code=0x7" },
        { { ITEM, .physical_address = 0x3000 }, "\"physical_address\":\"0x3000\"", "physical_address=0x3000" },
        { { ITEM, .cgroup_id = 31, .data_page_size = 4096, .code_page_size = 2097152, .id = 32, .stream_id = 33 },
          "\"cgroup_id\":31,\"data_page_size\":4096,\"code_page_size\":2097152", "cgroup_id=31 data_page_size=4096 "
          "code_page_size=2097152 id=32 stream_id=33" },
        { { ITEM, .aux_bytes = TEXT("\x0a\x0b") }, "\"aux_bytes\":\"0a0b\"", "aux_bytes=0a0b" },
};

static void test_records(void **state) {
        check_shown(records, sizeof(records) / sizeof(records[0]), true);
        check_shown(records, sizeof(records) / sizeof(records[0]), false);
}

static void test_parts(void **state) {
        check_shown(samples, sizeof(samples) / sizeof(samples[0]), true);
        check_shown(samples, sizeof(samples) / sizeof(samples[0]), false);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_records),
                cmocka_unit_test(test_parts),
        };

        return cmocka_run_group_tests(tests, open_listener, close_listener);
}
