/* Traces of Perfetto, read by what its documentation says of messages. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "client/profile/perfetto.h"
#include "client/profile/perfetto.pb-c.h"

#define TEXT(literal) ((PerfettoText){ .bytes = (literal), .n = sizeof(literal) - 1 })

typedef Perfetto__Written__TracePacket Packet;
typedef Perfetto__Written__TrackDescriptor Track;
typedef Perfetto__Written__DebugAnnotation Annotation;
typedef Perfetto__Written__SchedSwitch Switch;

typedef struct Rig {
        char *bytes;
        size_t n;
        FILE *out;
        PerfettoWriter *w;
        Perfetto__Written__Trace *trace; /* behind finish() */
} Rig;

static const PerfettoOrigin origin = { .clock = PERFETTO_CLOCK_MONOTONIC, .time = 1000, .wall = 5000, .system = "Linux", .release = "6.1.0", .machine = "x86_64" };

static void begin(Rig *rig) {
        *rig = (Rig){ .n = 0 };
        rig->out = open_memstream(&rig->bytes, &rig->n);
        assert_non_null(rig->out);
        rig->w = perfetto_new(rig->out, &origin);
        assert_non_null(rig->w);
}

static void finish(Rig *rig) {
        assert_int_equal(perfetto_finish(rig->w), 0);
        rig->w = perfetto_free(rig->w);
        assert_int_equal(fclose(rig->out), 0);
        rig->trace = perfetto__written__trace__unpack(NULL, rig->n, (const uint8_t *)rig->bytes);
        assert_non_null(rig->trace);
}

static void end(Rig *rig) {
        perfetto__written__trace__free_unpacked(rig->trace, NULL);
        free(rig->bytes);
}

static PerfettoMoment at(uint64_t time, uint32_t cpu, uint32_t pid, uint32_t tid) {
        return (PerfettoMoment){ .time = time, .cpu = cpu, .task = { .pid = pid, .tid = tid, .comm = TEXT("worker") } };
}

/* ---- what packets have -------------------------------------------------------------------------------------------------------------- */

/* What interned data up to packet i of its sequence calls it, since names were forgotten last. */
static const char *event_name(const Rig *rig, size_t i, uint64_t iid) {
        const char *name = NULL;

        for (size_t k = 0; k <= i; k++) {
                const Packet *p = rig->trace->packet[k];

                if (p->trusted_packet_sequence_id != rig->trace->packet[i]->trusted_packet_sequence_id)
                        continue;
                if (p->sequence_flags & 1)
                        name = NULL;
                for (size_t n = 0; p->interned_data && n < p->interned_data->n_event_names; n++)
                        if (p->interned_data->event_names[n]->iid == iid)
                                name = p->interned_data->event_names[n]->name;
        }
        return name;
}

static const Track *find_track(const Rig *rig, uint64_t uuid) {
        for (size_t i = 0; i < rig->trace->n_packet; i++)
                if (rig->trace->packet[i]->track_descriptor && rig->trace->packet[i]->track_descriptor->uuid == uuid)
                        return rig->trace->packet[i]->track_descriptor;
        return NULL;
}

static const Packet *only(const Rig *rig, bool (*is)(const Packet *p)) {
        const Packet *found = NULL;

        for (size_t i = 0; i < rig->trace->n_packet; i++)
                if (is(rig->trace->packet[i])) {
                        assert_null(found);
                        found = rig->trace->packet[i];
                }
        assert_non_null(found);
        return found;
}

static bool is_clocks(const Packet *p) {
        return p->clock_snapshot != NULL;
}

static bool is_system(const Packet *p) {
        return p->system_info != NULL;
}

static bool is_event(const Packet *p) {
        return p->track_event != NULL;
}

static bool is_sample(const Packet *p) {
        return p->perf_sample != NULL;
}

static bool is_bundle(const Packet *p) {
        return p->ftrace_events != NULL;
}

/* ---- tests -------------------------------------------------------------------------------------------------------------------------- */

static void test_origin(void **state) {
        static const uint64_t clocks[][2] = { { 3, 1000 }, { 6, 1000 }, { 1, 5000 } };
        Rig rig;
        const Perfetto__Written__ClockSnapshot *c;

        begin(&rig);
        finish(&rig);
        c = only(&rig, is_clocks)->clock_snapshot;
        assert_int_equal(c->primary_trace_clock, 3);
        assert_int_equal(c->n_clocks, 3);
        for (size_t i = 0; i < 3; i++) {
                assert_int_equal(c->clocks[i]->clock_id, clocks[i][0]);
                assert_int_equal(c->clocks[i]->timestamp, clocks[i][1]);
        }
        assert_string_equal(only(&rig, is_system)->system_info->utsname->release, "6.1.0");
        assert_null(only(&rig, is_system)->system_info->utsname->version);
        end(&rig);
}

static void put_switch(Rig *rig, uint32_t cpu, uint64_t time, int32_t from, int64_t state, int32_t to) {
        const PerfettoMoment m = at(time, cpu, 100, (uint32_t)from);

        assert_int_equal(perfetto_put_switch(rig->w, &m, &(PerfettoSide){ .tid = from, .prio = 120, .comm = TEXT("from") }, state,
                                             &(PerfettoSide){ .tid = to, .prio = -1, .comm = TEXT("to") }), 0);
}

static void test_switches(void **state) {
        Rig rig;
        size_t n[2] = { 0 };
        uint64_t bytes_max = 0;

        begin(&rig);
        for (int32_t i = 0; i < 1000; i++)
                put_switch(&rig, (uint32_t)i % 2, 2000 + (uint64_t)i, i + 1, i % 3 == 0 ? -1 : 256, i + 2);
        finish(&rig);
        for (size_t i = 0; i < rig.trace->n_packet; i++) {
                const Perfetto__Written__FtraceEventBundle *b = rig.trace->packet[i]->ftrace_events;

                for (size_t k = 0; b && k < b->n_event; k++) {
                        const int32_t number = (int32_t)(2 * n[b->cpu] + b->cpu);
                        const Switch *s = b->event[k]->sched_switch;

                        n[b->cpu]++;
                        assert_int_equal(b->event[k]->timestamp, 2000 + number);
                        assert_int_equal(b->event[k]->pid, number + 1);
                        assert_string_equal(s->prev_comm, "from");
                        assert_int_equal(s->prev_pid, number + 1);
                        assert_int_equal(s->prev_prio, 120);
                        assert_int_equal(s->prev_state, number % 3 == 0 ? -1 : 256);
                        assert_string_equal(s->next_comm, "to");
                        assert_int_equal(s->next_pid, number + 2);
                        assert_int_equal(s->next_prio, -1);
                }
                if (b && perfetto__written__ftrace_event_bundle__get_packed_size(b) > bytes_max)
                        bytes_max = perfetto__written__ftrace_event_bundle__get_packed_size(b);
        }
        assert_int_equal(n[0], 500);
        assert_int_equal(n[1], 500);
        assert_in_range(bytes_max, 8192, 8192 + 256); /* they are held back no longer */
        end(&rig);
}

static void test_wakeup(void **state) {
        Rig rig;
        const PerfettoMoment m = at(2000, 1, 100, 101);
        const Perfetto__Written__FtraceEventBundle *b;

        begin(&rig);
        assert_int_equal(perfetto_put_wakeup(rig.w, &m, PERFETTO_WAKING, &(PerfettoSide){ .tid = 7, .prio = 3, .comm = TEXT("x") }, 5), 0);
        assert_int_equal(perfetto_put_wakeup(rig.w, &m, PERFETTO_WAKEUP_NEW, &(PerfettoSide){ .tid = 8 }, 0), 0);
        finish(&rig);
        b = only(&rig, is_bundle)->ftrace_events;
        assert_int_equal(b->n_event, 2);
        assert_int_equal(b->event[0]->pid, 101);
        assert_int_equal(b->event[0]->sched_waking->pid, 7);
        assert_int_equal(b->event[0]->sched_waking->prio, 3);
        assert_int_equal(b->event[0]->sched_waking->target_cpu, 5);
        assert_string_equal(b->event[0]->sched_waking->comm, "x");
        assert_int_equal(b->event[1]->sched_wakeup_new->pid, 8);
        end(&rig);
}

static void check_number(const Annotation *a, uint64_t name, const char *kind, int64_t number) {
        assert_int_equal(a->name_iid, name);
        assert_int_equal(a->has_uint_value, strcmp(kind, "uint") == 0);
        assert_int_equal(a->has_int_value, strcmp(kind, "int") == 0);
        assert_int_equal(a->has_bool_value, strcmp(kind, "bool") == 0);
        assert_int_equal(a->has_pointer_value, strcmp(kind, "pointer") == 0);
        assert_int_equal(a->has_uint_value ? (int64_t)a->uint_value : a->has_int_value ? a->int_value : a->has_bool_value ? a->bool_value :
                         (int64_t)a->pointer_value, number);
}

static void test_instant(void **state) {
        static const uint64_t numbers[] = { UINT64_MAX, (uint64_t)-5, 1, 0xffff8000, 1, 2, 3 };
        const PerfettoField fields[] = {
                { .name = TEXT("flags"), .kind = PERFETTO_UNSIGNED, .numbers = numbers, .n_numbers = 1, .called = TEXT("ALL") },
                { .name = TEXT("error"), .kind = PERFETTO_SIGNED, .numbers = numbers + 1, .n_numbers = 1 },
                { .name = TEXT("is"), .kind = PERFETTO_BOOL, .numbers = numbers + 2, .n_numbers = 1 },
                { .name = TEXT("at"), .kind = PERFETTO_POINTER, .numbers = numbers + 3, .n_numbers = 1 },
                { .name = TEXT("args"), .kind = PERFETTO_UNSIGNED, .is_list = true, .numbers = numbers + 4, .n_numbers = 3 },
                { .name = TEXT("path"), .kind = PERFETTO_TEXT, .text = TEXT("/a\xff\xc3\xa4") },
        };
        Rig rig;
        const PerfettoMoment m = at(3000, 2, 100, 101);
        const Packet *p;
        const Perfetto__Written__TrackEvent *e;
        const Track *track;

        begin(&rig);
        assert_int_equal(perfetto_put_instant(rig.w, &m, TEXT("syscalls"), TEXT("sys_enter"), fields, 6, NULL, 0), 0);
        finish(&rig);
        p = only(&rig, is_event);
        e = p->track_event;
        assert_int_equal(p->timestamp, 3000);
        assert_int_equal(p->sequence_flags, 3);
        assert_int_equal(p->trace_packet_defaults->timestamp_clock_id, 3);
        assert_int_equal(e->type, PERFETTO__WRITTEN__TRACK_EVENT__TYPE__TYPE_INSTANT);
        assert_string_equal(p->interned_data->event_names[0]->name, "sys_enter");
        assert_int_equal(p->interned_data->event_names[0]->iid, e->name_iid);
        assert_string_equal(p->interned_data->event_categories[0]->name, "syscalls");
        assert_int_equal(p->interned_data->event_categories[0]->iid, e->category_iids[0]);
        assert_int_equal(e->n_debug_annotations, 7);
        for (size_t i = 0; i < 6; i++)
                assert_string_equal(p->interned_data->debug_annotation_names[i]->name, fields[i].name.bytes);
        check_number(e->debug_annotations[0], 1, "uint", -1);
        check_number(e->debug_annotations[1], 2, "int", -5);
        check_number(e->debug_annotations[2], 3, "bool", 1);
        check_number(e->debug_annotations[3], 4, "pointer", 0xffff8000);
        assert_int_equal(e->debug_annotations[4]->n_array_values, 3);
        for (size_t i = 0; i < 3; i++)
                assert_int_equal(e->debug_annotations[4]->array_values[i]->uint_value, i + 1);
        assert_string_equal(e->debug_annotations[5]->string_value, "/a\xee\xbf\xbf\xc3\xa4"); /* the byte 0xff is U+EFFF */
        assert_int_equal(e->debug_annotations[6]->n_dict_entries, 1);
        assert_int_equal(e->debug_annotations[6]->dict_entries[0]->name_iid, 1);
        assert_string_equal(e->debug_annotations[6]->dict_entries[0]->string_value, "ALL");
        track = find_track(&rig, e->track_uuid);
        assert_non_null(track);
        assert_int_equal(track->thread->pid, 100);
        assert_int_equal(track->thread->tid, 101);
        assert_string_equal(track->thread->thread_name, "worker");
        end(&rig);
}

/* Names are said once, tracks are described once, and again by another name; what has no thread is the CPU's. */
static void test_once(void **state) {
        Rig rig;
        PerfettoMoment m = at(3000, 2, 100, 100);
        size_t n_names = 0, n_tracks = 0, n_events = 0;

        begin(&rig);
        for (int i = 0; i < 100; i++)
                assert_int_equal(perfetto_put_instant(rig.w, &m, TEXT("c"), TEXT("e"), NULL, 0, NULL, 0), 0);
        m.task.comm = TEXT("renamed");
        assert_int_equal(perfetto_put_instant(rig.w, &m, TEXT("c"), TEXT("e"), NULL, 0, NULL, 0), 0);
        m.task.tid = 0;
        assert_int_equal(perfetto_put_instant(rig.w, &m, TEXT("c"), TEXT("e"), NULL, 0, NULL, 0), 0);
        finish(&rig);
        for (size_t i = 0; i < rig.trace->n_packet; i++) {
                const Packet *p = rig.trace->packet[i];

                n_events += is_event(p);
                n_tracks += p->track_descriptor != NULL;
                n_names += p->interned_data ? p->interned_data->n_event_names + p->interned_data->n_event_categories : 0;
                assert_true(!is_event(p) || p->sequence_flags == (n_events == 1 ? 3 : 2));
                if (n_events == 102)
                        assert_string_equal(find_track(&rig, p->track_event->track_uuid)->name, "CPU 2");
        }
        assert_int_equal(n_events, 102);
        assert_int_equal(n_names, 2);
        assert_int_equal(n_tracks, 5); /* its process and its thread by both names, and the CPU */
        end(&rig);
}

static const PerfettoFrame *three_frames(PerfettoFrame frames[static 3]) {
        static const char keys[3];

        frames[0] = (PerfettoFrame){ .key = &keys[0], .symbol = TEXT("read"), .dso = TEXT("[kernel.kallsyms]"), .address = 0xff1, .is_kernel = true };
        frames[1] = (PerfettoFrame){ .key = &keys[1], .symbol = TEXT("serve"), .dso = TEXT("/bin/x"), .build_id = TEXT("\1\0\xff"), .address = 0x20 };
        frames[2] = (PerfettoFrame){ .key = &keys[2], .dso = TEXT("/bin/x"), .build_id = TEXT("\1\0\xff"), .address = 0x10 };
        return frames;
}

static void test_samples(void **state) {
        const PerfettoEvent cycles = { .number = 1, .name = "cycles", .frequency = 99 }, faults = { .number = 7, .name = "page-faults", .period = 1 };
        Rig rig;
        PerfettoMoment m = at(3000, 2, 100, 101);
        PerfettoFrame frames[3];
        const Perfetto__Written__InternedData *names = NULL;
        size_t n[2] = { 0 };

        begin(&rig);
        for (int i = 0; i < 10; i++)
                assert_int_equal(perfetto_put_sample(rig.w, &m, &cycles, three_frames(frames), 3), 0);
        assert_int_equal(perfetto_put_sample(rig.w, &m, &faults, three_frames(frames) + 1, 2), 0);
        finish(&rig);
        for (size_t i = 0; i < rig.trace->n_packet; i++) {
                const Packet *p = rig.trace->packet[i];

                if (!is_sample(p))
                        continue;
                n[p->trusted_packet_sequence_id == 2]++;
                assert_int_equal(p->perf_sample->cpu, 2);
                assert_int_equal(p->perf_sample->pid, 100);
                assert_int_equal(p->perf_sample->tid, 101);
                assert_int_equal(p->perf_sample->callstack_iid, 1);
                if (p->trusted_packet_sequence_id == 2 && n[1] == 1) {
                        names = p->interned_data;
                        assert_string_equal(p->trace_packet_defaults->perf_sample_defaults->timebase->name, "cycles");
                        assert_int_equal(p->trace_packet_defaults->perf_sample_defaults->timebase->frequency, 99);
                        assert_int_equal(p->perf_sample->cpu_mode, 1);
                } else if (p->trusted_packet_sequence_id == 2)
                        assert_null(p->interned_data);
                else {
                        assert_int_equal(p->trusted_packet_sequence_id, 8);
                        assert_string_equal(p->trace_packet_defaults->perf_sample_defaults->timebase->name, "page-faults");
                        assert_int_equal(p->trace_packet_defaults->perf_sample_defaults->timebase->period, 1);
                        assert_int_equal(p->perf_sample->cpu_mode, 2);
                        assert_int_equal(p->interned_data->callstacks[0]->n_frame_ids, 2);
                }
        }
        assert_int_equal(n[0], 1);
        assert_int_equal(n[1], 10);
        assert_int_equal(names->n_callstacks, 1); /* the outermost first: three frames as they were said */
        assert_int_equal(names->n_frames, 3);
        assert_int_equal(names->n_mappings, 2);
        assert_int_equal(names->n_function_names, 2);
        for (size_t i = 0; i < 3; i++) {
                assert_int_equal(names->callstacks[0]->frame_ids[i], names->frames[i]->iid);
                assert_int_equal(names->frames[i]->rel_pc, frames[2 - i].address);
                assert_int_equal(names->frames[i]->has_function_name_id, i > 0);
                assert_int_equal(names->frames[i]->mapping_id, names->mappings[i == 2]->iid);
        }
        assert_memory_equal(names->function_names[0]->str.data, "serve", 5);
        assert_memory_equal(names->function_names[1]->str.data, "read", 4);
        assert_memory_equal(names->mapping_paths[0]->str.data, "bin/x", 5);
        assert_int_equal(names->build_ids[0]->str.len, 3);
        assert_memory_equal(names->build_ids[0]->str.data, "\1\0\xff", 3);
        assert_false(names->mappings[1]->has_build_id);
        end(&rig);
}

static void test_counters(void **state) {
        Rig rig;
        PerfettoMoment m = at(3000, 2, 100, 101);
        const PerfettoCounter of_cpu = { .name = TEXT("cycles"), .unit = TEXT("events"), .is_of_cpu = true, .is_whole = true, .value = 12345678901 };
        const PerfettoCounter of_thread = { .name = TEXT("energy"), .unit = TEXT("Joules"), .number = 2.5 };
        const Perfetto__Written__TrackEvent *events[3];
        const Track *cpu, *thread;
        size_t n = 0;

        begin(&rig);
        assert_int_equal(perfetto_put_counter(rig.w, &m, &of_cpu), 0);
        assert_int_equal(perfetto_put_counter(rig.w, &m, &of_thread), 0);
        m.task.tid = 102; /* the CPU's stays where it is */
        assert_int_equal(perfetto_put_counter(rig.w, &m, &of_cpu), 0);
        finish(&rig);
        for (size_t i = 0; i < rig.trace->n_packet; i++)
                if (is_event(rig.trace->packet[i])) {
                        assert_in_range(n, 0, 2);
                        events[n++] = rig.trace->packet[i]->track_event;
                }
        assert_int_equal(n, 3);
        assert_int_equal(events[0]->counter_value, 12345678901);
        assert_true(events[1]->double_counter_value == 2.5);
        assert_int_equal(events[2]->track_uuid, events[0]->track_uuid);
        cpu = find_track(&rig, events[0]->track_uuid);
        thread = find_track(&rig, events[1]->track_uuid);
        assert_string_equal(cpu->name, "cycles");
        assert_string_equal(cpu->counter->unit_name, "events");
        assert_string_equal(find_track(&rig, cpu->parent_uuid)->name, "CPU 2");
        assert_string_equal(thread->counter->unit_name, "Joules");
        assert_int_equal(find_track(&rig, thread->parent_uuid)->thread->tid, 101);
        end(&rig);
}

/* What was lost before an event of the CPU is said with it, and those before are whole. */
static void test_lost(void **state) {
        Rig rig;
        PerfettoMoment m = at(2001, 0, 0, 0);
        size_t n = 0;

        begin(&rig);
        put_switch(&rig, 0, 2000, 1, 0, 2);
        put_switch(&rig, 1, 2000, 3, 0, 4);
        assert_int_equal(perfetto_put_lost(rig.w, &m, 77), 0);
        put_switch(&rig, 0, 2002, 2, 0, 1);
        finish(&rig);
        for (size_t i = 0; i < rig.trace->n_packet; i++) {
                const Perfetto__Written__FtraceEventBundle *b = rig.trace->packet[i]->ftrace_events;

                n += b != NULL;
                if (b)
                        assert_int_equal(b->lost_events, b->cpu == 0 && b->event[0]->timestamp == 2002);
        }
        assert_int_equal(n, 3);
        assert_int_equal(only(&rig, is_sample)->perf_sample->kernel_records_lost, 77);
        assert_int_equal(only(&rig, is_sample)->perf_sample->cpu, 0);
        end(&rig);
}

/* A million names: memory does not grow with them, and each event still has the name that it was given. */
static void test_names_are_forgotten(void **state) {
        enum { N = 300000, LENGTH = 200 };
        Rig rig;
        const PerfettoMoment m = at(2000, 0, 100, 101);
        char name[LENGTH + 1];
        size_t n = 0, n_cleared = 0, n_tracks = 0;

        begin(&rig);
        memset(name, 'x', LENGTH);
        name[LENGTH] = '\0';
        for (int i = 0; i < N; i++) {
                (void)snprintf(name, sizeof(name), "%06d", i);
                name[6] = 'x';
                assert_int_equal(perfetto_put_instant(rig.w, &m, TEXT("c"), (PerfettoText){ .bytes = name, .n = LENGTH }, NULL, 0, NULL, 0), 0);
        }
        finish(&rig);
        for (size_t i = 0; i < rig.trace->n_packet; i++) {
                const Packet *p = rig.trace->packet[i];
                char number[7];

                n_tracks += p->track_descriptor != NULL;
                n_cleared += (p->sequence_flags & 1) != 0;
                if (!is_event(p))
                        continue;
                (void)snprintf(number, sizeof(number), "%06zu", n++);
                if (n % 50000 == 1 || (p->sequence_flags & 1) != 0)
                        assert_memory_equal(event_name(&rig, i, p->track_event->name_iid), number, 6);
        }
        assert_int_equal(n, N);
        assert_in_range(n_cleared, 2, 20);
        assert_int_equal(n_tracks, n_cleared); /* of a thread that is not its process's first */
        end(&rig);
}

static void test_full_disk(void **state) {
        FILE *out = fopen("/dev/full", "w");
        PerfettoWriter *w;

        assert_non_null(out);
        w = perfetto_new(out, &origin);
        assert_non_null(w);
        assert_int_equal(perfetto_finish(w), -ENOSPC);
        perfetto_free(w);
        (void)fclose(out);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_origin),
                cmocka_unit_test(test_switches),
                cmocka_unit_test(test_wakeup),
                cmocka_unit_test(test_instant),
                cmocka_unit_test(test_once),
                cmocka_unit_test(test_samples),
                cmocka_unit_test(test_counters),
                cmocka_unit_test(test_lost),
                cmocka_unit_test(test_names_are_forgotten),
                cmocka_unit_test(test_full_disk),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
