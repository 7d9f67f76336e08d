/*
 * Sections of the header: one function for each form, which reads a section and tells a visitor. Counts are believed only as long as bytes
 * follow: each loop ends with them, and what was told until then is whole. Source: the write_*() of perf's util/header.c, which differ
 * from perf.data-file-format.txt in places (NRCPUS: the CPUs that there are come first).
 */
#include <errno.h>
#include <stdio.h>

#include "client/recording/attr.h"
#include "client/recording/damage.h"
#include "client/recording/features.h"

#define FEATURE_MAX ((size_t)256 << 20) /* bytes of one that are read */

typedef struct Visit {
        Bytes b;
        const perfd_recording *recording;
        const perfd_feature_visitor *visitor;
        void *userdata;
        const char *key; /* of the root */
} Visit;

/* ---- telling --------------------------------------------------------------------------------------------------------------- */

static void begin_object(Visit *v, const char *key) {
        v->visitor->begin_object(v->userdata, key);
}

static void end_object(Visit *v) {
        v->visitor->end_object(v->userdata);
}

static void begin_list(Visit *v, const char *key) {
        v->visitor->begin_list(v->userdata, key);
}

static void end_list(Visit *v) {
        v->visitor->end_list(v->userdata);
}

static void tell_number(Visit *v, const char *key, uint64_t number) {
        if (!v->b.failed)
                v->visitor->number(v->userdata, key, number);
}

static void tell_u32(Visit *v, const char *key) {
        tell_number(v, key, bytes_u32(&v->b));
}

static void tell_u64(Visit *v, const char *key) {
        tell_number(v, key, bytes_u64(&v->b));
}

static void tell_string(Visit *v, const char *key) {
        const perfd_text text = bytes_string(&v->b);

        if (!v->b.failed)
                v->visitor->text(v->userdata, key, text);
}

static void tell_bytes(Visit *v, const char *key, uint64_t n) {
        const uint8_t *at = bytes_take(&v->b, n);

        if (at)
                v->visitor->bytes(v->userdata, key, (perfd_text){ .bytes = (const char *)at, .length = (size_t)n });
}

static bool goes_on(const Visit *v, uint64_t i, uint64_t n) {
        return i < n && !v->b.failed;
}

static void tell_strings(Visit *v, const char *key) {
        const uint32_t n = bytes_u32(&v->b);

        begin_list(v, key);
        for (uint32_t i = 0; goes_on(v, i, n); i++)
                tell_string(v, NULL);
        end_list(v);
}

/* ---- the forms --------------------------------------------------------------------------------------------------------------- */

static void visit_nothing(Visit *v) {
        v->visitor->flag(v->userdata, v->key, true);
}

static void visit_string(Visit *v) {
        tell_string(v, v->key);
}

static void visit_strings(Visit *v) {
        tell_strings(v, v->key);
}

static void visit_u64(Visit *v) {
        tell_u64(v, v->key);
}

static void visit_size(Visit *v) {
        begin_object(v, v->key);
        tell_number(v, "size", bytes_left(&v->b));
        end_object(v);
        v->b.at = v->b.end;
}

static void visit_bytes(Visit *v) {
        tell_bytes(v, v->key, bytes_left(&v->b));
}

static void visit_nrcpus(Visit *v) {
        begin_object(v, v->key);
        tell_u32(v, "available");
        tell_u32(v, "online");
        end_object(v);
}

/* Records: header, pid, 20 bytes of an id, one with its length, three of padding, and a path that ends with a 0. */
static void visit_build_id(Visit *v, bool has_pid) {
        const uint16_t misc = (bytes_u32(&v->b), bytes_u16(&v->b)), size = bytes_u16(&v->b);
        const size_t before = PERF_DATA_RECORD_HEADER + (has_pid ? sizeof(uint32_t) : 0) + PERF_DATA_BUILD_ID + sizeof(uint32_t);
        Bytes rest;
        const uint8_t *id;
        uint8_t n = PERF_DATA_BUILD_ID;
        perfd_text path;
        int32_t pid;

        if (size < before) {
                bytes_fail(&v->b, "has a record that is smaller than a build id");
                return;
        }
        rest = bytes_split(&v->b, size - PERF_DATA_RECORD_HEADER);
        if (v->b.failed)
                return;
        pid = has_pid ? (int32_t)bytes_u32(&rest) : -1;
        id = bytes_take(&rest, PERF_DATA_BUILD_ID + sizeof(uint32_t));
        path = (perfd_text){ .bytes = (const char *)rest.at, .length = strnlen((const char *)rest.at, bytes_left(&rest)) };
        if ((misc & PERF_DATA_BUILD_ID_HAS_SIZE) != 0 && id[PERF_DATA_BUILD_ID] <= PERF_DATA_BUILD_ID)
                n = id[PERF_DATA_BUILD_ID];
        begin_object(v, NULL);
        v->visitor->bytes(v->userdata, "build_id", (perfd_text){ .bytes = (const char *)id, .length = n });
        v->visitor->text(v->userdata, "path", path);
        v->visitor->number(v->userdata, "misc", misc);
        if (pid >= 0)
                v->visitor->number(v->userdata, "pid", (uint64_t)pid);
        end_object(v);
}

/* Perf before Linux 2.6.35 wrote no pid: the kernel's name, which comes first, begins four bytes earlier there. */
static bool build_ids_have_pid(const Visit *v) {
        static const char name[] = "[kernel.kallsyms]";
        const size_t at = PERF_DATA_RECORD_HEADER + PERF_DATA_BUILD_ID + sizeof(uint32_t);

        return bytes_left(&v->b) < at + sizeof(name) || memcmp(v->b.at + at, name, sizeof(name)) != 0;
}

static void visit_build_ids(Visit *v) {
        const bool have_pid = build_ids_have_pid(v);

        begin_list(v, v->key);
        while (bytes_left(&v->b) > 0)
                visit_build_id(v, have_pid);
        end_list(v);
}

static void visit_event_desc(Visit *v) {
        const uint32_t n = bytes_u32(&v->b), size = bytes_u32(&v->b);

        begin_list(v, v->key);
        for (uint32_t i = 0; goes_on(v, i, n); i++) {
                perfd_recorded_event e = { .name = NULL };
                uint32_t n_ids;

                attr_read(&v->b, size, &e);
                n_ids = bytes_u32(&v->b);
                begin_object(v, NULL);
                tell_string(v, "name");
                tell_number(v, "type", e.type);
                tell_number(v, "config", e.config);
                begin_list(v, "ids");
                for (uint32_t k = 0; goes_on(v, k, n_ids); k++)
                        tell_u64(v, NULL);
                end_list(v);
                end_object(v);
        }
        end_list(v);
}

static uint32_t find_n_cpus(const perfd_recording *r) {
        Bytes b;

        return feature_get((perfd_recording *)(uintptr_t)r, PERF_DATA_FEATURE_NRCPUS, &b) == 0 ? bytes_u32(&b) : 0;
}

/* Lists of siblings, then core and socket of each CPU, then, of newer ones, the lists of dies and the die of each. */
static void visit_cpu_topology(Visit *v, uint32_t n_cpus) {
        begin_object(v, v->key);
        tell_strings(v, "cores");
        tell_strings(v, "threads");
        if (bytes_left(&v->b) > 0) {
                begin_list(v, "cpus");
                for (uint32_t i = 0; goes_on(v, i, n_cpus); i++) {
                        begin_object(v, NULL);
                        tell_u32(v, "core");
                        tell_u32(v, "socket");
                        end_object(v);
                }
                end_list(v);
        }
        if (bytes_left(&v->b) > 0) {
                tell_strings(v, "dies");
                begin_list(v, "cpu_dies");
                for (uint32_t i = 0; goes_on(v, i, n_cpus); i++)
                        tell_u32(v, NULL);
                end_list(v);
        }
        end_object(v);
}

static void visit_numa_topology(Visit *v) {
        const uint32_t n = bytes_u32(&v->b);

        begin_list(v, v->key);
        for (uint32_t i = 0; goes_on(v, i, n); i++) {
                begin_object(v, NULL);
                tell_u32(v, "node");
                tell_u64(v, "total_kb");
                tell_u64(v, "free_kb");
                tell_string(v, "cpus");
                end_object(v);
        }
        end_list(v);
}

static void visit_pmu_mappings(Visit *v) {
        const uint32_t n = bytes_u32(&v->b);

        begin_list(v, v->key);
        for (uint32_t i = 0; goes_on(v, i, n); i++) {
                begin_object(v, NULL);
                tell_u32(v, "type");
                tell_string(v, "name");
                end_object(v);
        }
        end_list(v);
}

static void visit_group_desc(Visit *v) {
        const uint32_t n = bytes_u32(&v->b);

        begin_list(v, v->key);
        for (uint32_t i = 0; goes_on(v, i, n); i++) {
                begin_object(v, NULL);
                tell_string(v, "name");
                tell_u32(v, "leader");
                tell_u32(v, "members");
                end_object(v);
        }
        end_list(v);
}

static void visit_auxtrace(Visit *v) {
        const uint64_t n = bytes_u64(&v->b);

        begin_list(v, v->key);
        for (uint64_t i = 0; goes_on(v, i, n); i++) {
                begin_object(v, NULL);
                tell_u64(v, "offset");
                tell_u64(v, "size");
                end_object(v);
        }
        end_list(v);
}

static void visit_cache(Visit *v) {
        static const char *const numbers[] = { "level", "line_size", "sets", "ways" };
        static const char *const texts[] = { "type", "size", "cpus" };
        const uint32_t n = (bytes_u32(&v->b), bytes_u32(&v->b)); /* behind the version */

        begin_list(v, v->key);
        for (uint32_t i = 0; goes_on(v, i, n); i++) {
                begin_object(v, NULL);
                for (size_t k = 0; k < sizeof(numbers) / sizeof(numbers[0]); k++)
                        tell_u32(v, numbers[k]);
                for (size_t k = 0; k < sizeof(texts) / sizeof(texts[0]); k++)
                        tell_string(v, texts[k]);
                end_object(v);
        }
        end_list(v);
}

static void visit_sample_time(Visit *v) {
        begin_object(v, v->key);
        tell_u64(v, "first");
        tell_u64(v, "last");
        end_object(v);
}

static void visit_mem_topology(Visit *v) {
        uint64_t n;

        begin_object(v, v->key);
        tell_u64(v, "version");
        tell_u64(v, "block_size");
        n = bytes_u64(&v->b);
        begin_list(v, "nodes");
        for (uint64_t i = 0; goes_on(v, i, n); i++) {
                uint64_t n_bits;

                begin_object(v, NULL);
                tell_u64(v, "node");
                tell_u64(v, "size");
                n_bits = bytes_u64(&v->b);
                begin_list(v, "blocks"); /* words of a bitmap */
                for (uint64_t k = 0; goes_on(v, k, n_bits / 64 + (n_bits % 64 > 0)); k++)
                        tell_u64(v, NULL);
                end_list(v);
                end_object(v);
        }
        end_list(v);
        end_object(v);
}

static void visit_bpf_prog_info(Visit *v) {
        const uint32_t n = bytes_u32(&v->b);

        begin_list(v, v->key);
        for (uint32_t i = 0; goes_on(v, i, n); i++) {
                const uint32_t n_info = bytes_u32(&v->b), n_data = bytes_u32(&v->b);

                begin_object(v, NULL);
                tell_u64(v, "arrays");
                tell_bytes(v, "info", n_info);
                tell_bytes(v, "data", n_data);
                end_object(v);
        }
        end_list(v);
}

static void visit_bpf_btf(Visit *v) {
        const uint32_t n = bytes_u32(&v->b);

        begin_list(v, v->key);
        for (uint32_t i = 0; goes_on(v, i, n); i++) {
                uint32_t n_data;

                begin_object(v, NULL);
                tell_u32(v, "id");
                n_data = bytes_u32(&v->b);
                tell_number(v, "size", n_data);
                (void)bytes_take(&v->b, n_data);
                end_object(v);
        }
        end_list(v);
}

static void visit_compressed(Visit *v) {
        static const char *const names[] = { "version", "type", "level", "ratio", "mmap_length" };

        begin_object(v, v->key);
        for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
                tell_u32(v, names[i]);
        end_object(v);
}

/* u32 n, and as many names with their values. */
static void tell_caps(Visit *v, const char *key) {
        const uint32_t n = bytes_u32(&v->b);

        begin_list(v, key);
        for (uint32_t i = 0; goes_on(v, i, n); i++) {
                begin_object(v, NULL);
                tell_string(v, "name");
                tell_string(v, "value");
                end_object(v);
        }
        end_list(v);
}

static void visit_cpu_pmu_caps(Visit *v) {
        tell_caps(v, v->key);
}

static void visit_pmu_caps(Visit *v) {
        const uint32_t n = bytes_u32(&v->b);

        begin_list(v, v->key);
        for (uint32_t i = 0; goes_on(v, i, n); i++) {
                begin_object(v, NULL);
                tell_caps(v, "caps");
                tell_string(v, "pmu");
                end_object(v);
        }
        end_list(v);
}

static void visit_clock_data(Visit *v) {
        begin_object(v, v->key);
        tell_u32(v, "version");
        tell_u32(v, "clockid");
        tell_u64(v, "wall_clock_ns");
        tell_u64(v, "clockid_time_ns");
        end_object(v);
}

static void visit_hybrid_topology(Visit *v) {
        const uint32_t n = bytes_u32(&v->b);

        begin_list(v, v->key);
        for (uint32_t i = 0; goes_on(v, i, n); i++) {
                begin_object(v, NULL);
                tell_string(v, "pmu");
                tell_string(v, "cpus");
                end_object(v);
        }
        end_list(v);
}

static void (*const forms[])(Visit *v) = {
        [PERF_DATA_FEATURE_TRACING_DATA] = visit_size,
        [PERF_DATA_FEATURE_BUILD_ID] = visit_build_ids,
        [PERF_DATA_FEATURE_HOSTNAME] = visit_string,
        [PERF_DATA_FEATURE_OSRELEASE] = visit_string,
        [PERF_DATA_FEATURE_VERSION] = visit_string,
        [PERF_DATA_FEATURE_ARCH] = visit_string,
        [PERF_DATA_FEATURE_NRCPUS] = visit_nrcpus,
        [PERF_DATA_FEATURE_CPUDESC] = visit_string,
        [PERF_DATA_FEATURE_CPUID] = visit_string,
        [PERF_DATA_FEATURE_TOTAL_MEM] = visit_u64,
        [PERF_DATA_FEATURE_CMDLINE] = visit_strings,
        [PERF_DATA_FEATURE_EVENT_DESC] = visit_event_desc,
        [PERF_DATA_FEATURE_NUMA_TOPOLOGY] = visit_numa_topology,
        [PERF_DATA_FEATURE_BRANCH_STACK] = visit_nothing,
        [PERF_DATA_FEATURE_PMU_MAPPINGS] = visit_pmu_mappings,
        [PERF_DATA_FEATURE_GROUP_DESC] = visit_group_desc,
        [PERF_DATA_FEATURE_AUXTRACE] = visit_auxtrace,
        [PERF_DATA_FEATURE_STAT] = visit_nothing,
        [PERF_DATA_FEATURE_CACHE] = visit_cache,
        [PERF_DATA_FEATURE_SAMPLE_TIME] = visit_sample_time,
        [PERF_DATA_FEATURE_MEM_TOPOLOGY] = visit_mem_topology,
        [PERF_DATA_FEATURE_CLOCKID] = visit_u64,
        [PERF_DATA_FEATURE_DIR_FORMAT] = visit_u64,
        [PERF_DATA_FEATURE_BPF_PROG_INFO] = visit_bpf_prog_info,
        [PERF_DATA_FEATURE_BPF_BTF] = visit_bpf_btf,
        [PERF_DATA_FEATURE_COMPRESSED] = visit_compressed,
        [PERF_DATA_FEATURE_CPU_PMU_CAPS] = visit_cpu_pmu_caps,
        [PERF_DATA_FEATURE_CLOCK_DATA] = visit_clock_data,
        [PERF_DATA_FEATURE_HYBRID_TOPOLOGY] = visit_hybrid_topology,
        [PERF_DATA_FEATURE_PMU_CAPS] = visit_pmu_caps,
};

/* ---- one of them ------------------------------------------------------------------------------------------------------------- */

int feature_get(perfd_recording *r, unsigned bit, Bytes *ret) {
        const Section *s;
        const Piece *p;

        if (!recording_has(r, bit))
                return PERFD_E_INVALID;
        s = &r->sections[bit];
        p = &r->pieces[bit];
        if (r->is_pipe) {
                *ret = (Bytes){ .at = p->bytes, .end = p->bytes + p->n, .offset = p->offset, .swap = r->is_swapped };
                return 0;
        }
        return recording_get(r, s->offset, s->size < FEATURE_MAX ? (size_t)s->size : FEATURE_MAX, ret);
}

int perfd_recording_visit_feature(perfd_recording *r, unsigned bit, const perfd_feature_visitor *visitor, void *userdata) {
        Visit v = { .recording = r, .visitor = visitor, .userdata = userdata };
        char what[64], key[32];
        uint32_t n_cpus = bit == PERF_DATA_FEATURE_CPU_TOPOLOGY ? find_n_cpus(r) : 0;
        int code = feature_get(r, bit, &v.b);

        if (code != 0)
                return code;
        (void)snprintf(key, sizeof(key), "FEATURE_%u", bit);
        v.key = perfd_feature_name(bit) ? perfd_feature_name(bit) : key;
        if (bit == PERF_DATA_FEATURE_CPU_TOPOLOGY)
                visit_cpu_topology(&v, n_cpus);
        else if (bit < sizeof(forms) / sizeof(forms[0]) && forms[bit])
                forms[bit](&v);
        else
                visit_bytes(&v);
        if ((r->cut[bit / 64] >> bit % 64 & 1) != 0)
                return 0;
        if (!v.b.failed)
                return 0;
        r->cut[bit / 64] |= UINT64_C(1) << bit % 64; /* a repair leaves it out */
        (void)snprintf(what, sizeof(what), "section %s", v.key);
        return recording_damage_of(r, &v.b, what);
}
