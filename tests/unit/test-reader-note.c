/*
 * What a reader tells the dispatcher of tasks: each record that says something of them becomes a note, in its place
 * between the items, whole or not at all; and the names that conditions ask for.
 */
#include "daemon/model/task-note.h"
#include "tests/unit/reader-checks.h"

typedef struct WantNote {
        nsec_t time;
        TaskNoteKind kind;
        uint32_t pid, tid, parent_pid, parent_tid;
        uint64_t cgroup;
        const char *text;
} WantNote;

static void check_note(const Batch *b, const BatchEntry *e, const WantNote *w) {
        TaskNote n = task_note_get(b->arena + entry_offset(e), e->length);

        assert_int_equal(e->event, BATCH_MARKER);
        assert_int_equal(e->mask, 0);
        assert_int_equal(e->time, w->time);
        assert_int_equal(n.kind, w->kind);
        assert_int_equal(n.pid, w->pid);
        assert_int_equal(n.tid, w->tid);
        assert_int_equal(e->tid, w->tid);
        assert_int_equal(n.parent_pid, w->parent_pid);
        assert_int_equal(n.parent_tid, w->parent_tid);
        assert_int_equal(n.cgroup, w->cgroup);
        assert_int_equal(n.n_text, w->text ? strlen(w->text) : 0);
        assert_memory_equal(n.text, w->text ? w->text : "", n.n_text);
}

static Batch *drain(Rig *rig) {
        Batch *b;

        assert_int_equal(reader_drain(&rig->reader), 0);
        assert_int_equal(reader_push_batch(&rig->reader), 0);
        b = queue_pop(&rig->reader.full);
        assert_non_null(b);
        check_batch(b);
        return b;
}

static void put_map(Rig *rig, RigWho who, const char *filename) {
        uint8_t body[320] = { 0 };
        size_t length = (strlen(filename) + 8) & ~(size_t)7;

        memcpy(body, &who, 8);
        memcpy(body + 64, filename, strlen(filename));
        assert_true(rig_put_side(rig, PERF_RECORD_MMAP2, RIG_CARRIER, who, body, 64 + length));
}

static void put_comm(Rig *rig, RigWho who, const char *comm, uint16_t misc) {
        struct {
                uint32_t pid, tid;
                char comm[COMM_SIZE];
                RigWho who;
                uint64_t id;
        } body = { .pid = who.pid, .tid = who.tid, .who = who, .id = RIG_CARRIER };

        strncpy(body.comm, comm, COMM_SIZE - 1);
        assert_true(rig_put_record(rig, PERF_RECORD_COMM, misc, &body, sizeof(body)));
}

static void test_notes(void **state) {
        static const WantNote wants[] = {
                { 100, TASK_NOTE_COMM, 7, 71, .text = "first" },
                { 110, TASK_NOTE_FORK, 72, 72, 7, 71 },
                { 130, TASK_NOTE_EXEC, 72, 72, .text = "second" },
                { 140, TASK_NOTE_MAP, 72, 72, .text = "/bin/second" },
                { 141, TASK_NOTE_MAP, 72, 72 }, /* a path that the kernel could not tell */
                { 150, TASK_NOTE_EXIT, 72, 72, 7, 71 },
        };
        Batch *b;
        Rig rig;
        size_t k = 0;

        rig_init(&rig, 16 * 1024, 2);
        for (int told = 0; told < 2; told++) {
                rig.reader.snapshot->notes = told;
                rig_put_comm(&rig, WHO(7, 71, 100), "first");
                rig_put_fork(&rig, WHO(7, 71, 110), 72);
                rig_put_number(&rig, 1, WHO(72, 72, 120), 2, 0);
                put_comm(&rig, WHO(72, 72, 130), "second", PERF_RECORD_MISC_COMM_EXEC);
                put_map(&rig, WHO(72, 72, 140), "/bin/second");
                put_map(&rig, WHO(72, 72, 141), "//toolong");
                put_map(&rig, WHO(72, 72, 142), "//anon");
                put_map(&rig, WHO(72, 72, 143), "[vdso]");
                rig_put_side(&rig, PERF_RECORD_EXIT, RIG_CARRIER, WHO(72, 72, 150), (uint32_t[6]){ 72, 7, 72, 71 }, 24);
                rig_put_comm(&rig, WHO(0, 0, 160), "outside");                    /* of our pid namespace */
                rig_put_comm(&rig, WHO(UINT32_MAX, UINT32_MAX, 170), "dead");
                rig_put_lost(&rig, RIG_CARRIER, WHO(0, 0, 180), 3);
                b = drain(&rig);
                assert_int_equal(b->n_notes, told ? ARRAY_SIZE(wants) : 0);
                assert_int_equal(b->n_entries - b->n_notes, 12);
                for (size_t i = 0; i < b->n_entries; i++)
                        if (b->entries[i].event == BATCH_MARKER)
                                check_note(b, &b->entries[i], &wants[k++]);
                queue_push(&rig.reader.free, b);
        }
        assert_int_equal(k, ARRAY_SIZE(wants));
        rig_deinit(&rig);
}

/* A record whose note has room where its item has none comes whole with the next batch, once. */
static void test_full_batch(void **state) {
        size_t n_notes = 0, n_comms = 0, n_batches = 0;
        nsec_t last = 0;
        Rig rig;
        Batch *b;

        rig_init(&rig, 1 << 20, 64);
        rig.reader.snapshot->notes = true;
        for (nsec_t time = 1; time <= 3000; time++)
                rig_put_comm(&rig, WHO(7, 71, time), time % 7 ? "a name" : "another name");
        assert_int_equal(reader_drain(&rig.reader), 0);
        assert_int_equal(reader_push_batch(&rig.reader), 0);
        for (; (b = queue_pop(&rig.reader.full)); n_batches++) {
                check_batch(b);
                assert_int_equal(b->n_entries, 2 * b->n_notes);
                for (size_t i = 0; i < b->n_entries; i += 2) {
                        assert_int_equal(b->entries[i].time, last + 1);
                        assert_int_equal(b->entries[i].event, BATCH_MARKER);
                        assert_int_equal(b->entries[i + 1].time, ++last);
                        assert_int_equal(b->entries[i + 1].event, 0);
                }
                n_notes += b->n_notes;
                n_comms += b->n_entries - b->n_notes;
                queue_push(&rig.reader.free, b);
        }
        assert_true(n_notes == 3000 && n_comms == 3000 && n_batches >= 4);
        check_ring_counts(&rig, (RingCounts){ .records = 3000, .side_records = 3000 });
        rig_deinit(&rig);
}

#define MOVES 200

static Plan *moves_plan(MoveFields *m) {
        static const struct {
                const char *name;
                FieldKind kind;
                FieldPlace place;
                uint32_t offset, size, count;
        } fields[] = {
                { "dst_root", FIELD_SIGNED, PLACE_FIXED, 8, 4, 1 },  { "dst_id", FIELD_UNSIGNED, PLACE_FIXED, 16, 8, 1 },
                { "pid", FIELD_SIGNED, PLACE_FIXED, 24, 4, 1 },      { "dst_path", FIELD_TEXT, PLACE_DATA_LOC, 28, 1, 0 },
        };
        Plan *plan = plan_new(3, "cgroup", "cgroup_attach_task");

        assert_non_null(plan);
        for (size_t i = 0; i < ARRAY_SIZE(fields); i++) {
                PlanField *f = plan_add_field(plan, fields[i].name, "");

                assert_non_null(f);
                f->kind = fields[i].kind;
                f->place = fields[i].place;
                f->offset = fields[i].offset;
                f->element_size = fields[i].size;
                f->count = fields[i].count;
        }
        plan->min_size = 32;
        *m = (MoveFields){ .id = MOVES, .plan = plan, .hierarchy = plan_find(plan, "dst_root"),
                           .cgroup = plan_find(plan, "dst_id"), .tid = plan_find(plan, "pid"),
                           .path = plan_find(plan, "dst_path"), .wanted = 5 };
        return plan;
}

static void put_move(Rig *rig, RigWho who, int32_t hierarchy, int32_t tid, uint32_t path_size) {
        struct {
                uint64_t common;
                int32_t root, level;
                uint64_t id;
                int32_t pid;
                uint32_t path;
                char text[12];
        } raw = { .root = hierarchy, .id = 77, .pid = tid, .path = path_size << 16 | 32, .text = "/own/place" };

        rig_put_sample(rig, MOVES, who, &raw, 44);
}

static void test_moves(void **state) {
        static const WantNote want = { 120, TASK_NOTE_CGROUP, 0, 40, .cgroup = 77, .text = "/own/place" };
        _cleanup_(plan_unrefp) Plan *plan = NULL;
        Batch *b;
        Rig rig;

        rig_init(&rig, 16 * 1024, 2);
        put_move(&rig, WHO(9, 9, 90), 5, 40, 12);
        check_ring_counts(&rig, (RingCounts){ .records = 0 });
        queue_push(&rig.reader.free, drain(&rig));
        check_ring_counts(&rig, (RingCounts){ .records = 1, .unknown_id = 1 }); /* there is no such stream */

        plan = moves_plan(&rig.reader.moves);
        rig.reader.moves.layout = rig.plain;
        put_move(&rig, WHO(9, 9, 100), 5, 40, 12); /* nobody is subscribed */
        queue_push(&rig.reader.free, drain(&rig));
        rig.reader.snapshot->notes = true;
        put_move(&rig, WHO(9, 9, 110), 4, 40, 12); /* another hierarchy */
        put_move(&rig, WHO(9, 9, 120), 5, 40, 12);
        put_move(&rig, WHO(9, 9, 130), 5, 40, 13); /* outside of the record */
        rig_put_sample(&rig, MOVES, WHO(9, 9, 140), "short", 4);
        b = drain(&rig);
        assert_int_equal(b->n_entries, 1);
        check_note(b, &b->entries[0], &want);
        queue_push(&rig.reader.free, b);
        check_ring_counts(&rig, (RingCounts){ .records = 6, .side_records = 3, .unknown_id = 1, .undecodable = 2 });
        rig_deinit(&rig);
}

/* Of samples with conditions on comm only; by COMM and FORK, else by what is known otherwise. */
static void test_names_for_conditions(void **state) {
        Rig rig;

        rig_init(&rig, 16 * 1024, 2);
        rig_put_comm(&rig, WHO(7, 7000071, 100), "wanted one");
        rig_put_software(&rig, WHO(7, 7000071, 110), 1);
        rig_put_fork(&rig, WHO(7, 7000071, 120), 7000072); /* has its parent's name */
        rig_put_software(&rig, WHO(7, 7000072, 130), 1);
        rig_put_comm(&rig, WHO(7, 7000072, 140), "other");
        rig_put_software(&rig, WHO(7, 7000072, 150), 1);
        rig_put_software(&rig, WHO(7, 7000073, 160), 1); /* no such thread */
        rig_put_number(&rig, 1, WHO(7, 7000071, 170), 2, 0);
        assert_int_equal(reader_drain(&rig.reader), 0);
        assert_int_equal(reader_push_batch(&rig.reader), 0);
        TAKE(&rig, { 100, 1 << 8, 0, 7, 7000071 }, { 110, 1 << 3 | 1 << 6, 12, 7, 7000071 }, { 120, 1 << 8, 0, 7, 7000071 },
             { 130, 1 << 3 | 1 << 6, 12, 7, 7000072 }, { 140, 1 << 8, 0, 7, 7000072 }, { 150, 1 << 3, 12, 7, 7000072 },
             { 160, 1 << 3, 12, 7, 7000073 }, { 170, 1, 11, 7, 7000071, 2 });
        assert_true(match_needs_comm(rig.reader.snapshot->events[RIG_SOFTWARE].routes[1].program));
        assert_false(match_needs_comm(rig.reader.snapshot->events[RIG_NUMBERS].routes[1].program));
        rig_deinit(&rig);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_notes),
                cmocka_unit_test(test_full_batch),
                cmocka_unit_test(test_moves),
                cmocka_unit_test(test_names_for_conditions),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
