/* Records of a recording, as perf_event_open(2) has them, in the byte order of the recording; what stands in them is not believed. */
#include <linux/perf_event.h>
#include <string.h>

#include "client/perfd/recorded-sample.h"
#include "client/recording/bytes.h"
#include "client/symbols/symbolizer.h"
#include "proto/recording-format.h"

#define MMAP_BUILD_ID (1U << 14) /* PERF_RECORD_MISC_MMAP_BUILD_ID */
#define COMM_EXEC (1U << 13)
#define KSYMBOL_UNREGISTER 1U
#define KSYMBOL_FUNCTION 0U /* PERF_RECORD_KSYMBOL_TYPE_UNKNOWN: of no code that is loaded, but a function that record --host was told */
#define CPU_MODE 7U
#define KERNEL_MODE 1U
#define BUILD_ID_FEATURE 2
#define BUILD_ID_RECORD 67
#define BUILD_ID_BYTES 20

static perfd_text take_text(Bytes *b) {
        const char *from = (const char *)b->at;

        return (perfd_text){ .bytes = from, .length = strnlen(from, bytes_left(b)) };
}

static int feed_mapping(perfd_symbolizer *s, Bytes *b, const perfd_recorded *record, uint64_t time) {
        perfd_mapping m = PERFD_MAPPING_INIT;
        const uint8_t *identity = NULL;
        int r;

        m.time = time;
        m.is_kernel = (record->misc & CPU_MODE) == KERNEL_MODE;
        m.pid = bytes_u32(b);
        bytes_u32(b);
        m.start = bytes_u64(b);
        m.length = bytes_u64(b);
        m.offset = bytes_u64(b);
        if (record->type == PERF_RECORD_MMAP2 && (record->misc & MMAP_BUILD_ID) != 0) {
                identity = bytes_take(b, 24);
                if (identity && identity[0] <= BUILD_ID_BYTES)
                        m.build_id = (perfd_text){ .bytes = (const char *)identity + 4, .length = identity[0] };
        } else if (record->type == PERF_RECORD_MMAP2) {
                m.maj = bytes_u32(b);
                m.min = bytes_u32(b);
                m.ino = bytes_u64(b);
                m.ino_generation = bytes_u64(b);
        }
        if (record->type == PERF_RECORD_MMAP2)
                bytes_u64(b); /* prot, flags */
        if (b->failed)
                return 0;
        m.path = take_text(b);
        r = perfd_symbolizer_map(s, &m);
        return r < 0 ? r : 0;
}

static int feed_task(perfd_symbolizer *s, Bytes *b, const perfd_recorded *record, uint64_t time) {
        const uint32_t pid = bytes_u32(b), other = bytes_u32(b);

        if (b->failed)
                return 0;
        if (record->type == PERF_RECORD_COMM)
                return (record->misc & COMM_EXEC) != 0 ? perfd_symbolizer_exec(s, pid, time) : 0;
        if (record->type == PERF_RECORD_FORK)
                return perfd_symbolizer_fork(s, pid, other, time);
        return pid == bytes_u32(b) ? perfd_symbolizer_exit(s, pid) : 0; /* tid: its first thread */
}

/* "vfs_read", "ext4_readdir [ext4]" */
static void part_function(perfd_text *name, perfd_text *ret_dso) {
        static const char kernel[] = "[kernel.kallsyms]";
        const char *module = memrchr(name->bytes, ' ', name->length);
        const size_t n = module ? (size_t)(module - name->bytes) : 0;

        *ret_dso = (perfd_text){ .bytes = kernel, .length = sizeof(kernel) - 1 };
        if (n == 0 || n + 4 > name->length || module[1] != '[' || name->bytes[name->length - 1] != ']')
                return;
        *ret_dso = (perfd_text){ .bytes = module + 1, .length = name->length - n - 1 };
        name->length = n;
}

static int feed_ksymbol(perfd_symbolizer *s, Bytes *b, uint64_t time) {
        const uint64_t address = bytes_u64(b), length = bytes_u32(b);
        const uint16_t type = bytes_u16(b), flags = bytes_u16(b);
        perfd_text name, dso;
        int r;

        if (b->failed)
                return 0;
        name = dso = take_text(b);
        if (type == KSYMBOL_FUNCTION)
                part_function(&name, &dso);
        r = symbolizer_add_code(s, time, address, length, name, dso, (flags & KSYMBOL_UNREGISTER) != 0);
        return r < 0 ? r : 0;
}

static int feed_build_id(perfd_symbolizer *s, Bytes *b, const perfd_recorded *record) {
        const uint8_t *id = (bytes_u32(b), bytes_take(b, PERF_DATA_BUILD_ID + sizeof(uint32_t)));
        const bool has_size = (record->misc & PERF_DATA_BUILD_ID_HAS_SIZE) != 0;
        int r;

        if (!id || (has_size && id[PERF_DATA_BUILD_ID] > PERF_DATA_BUILD_ID))
                return 0;
        r = perfd_symbolizer_set_build_id(s, take_text(b), (perfd_text){ .bytes = (const char *)id, .length = has_size ? id[PERF_DATA_BUILD_ID] : PERF_DATA_BUILD_ID });
        return r < 0 ? r : 0;
}

/* The section of a file, an object for each. */
typedef struct Listed {
        perfd_symbolizer *symbols;
        perfd_text path, id;
        int code;
} Listed;

static void on_nothing(void *userdata, const char *key) {
}

static void on_list_end(void *userdata) {
}

static void on_number(void *userdata, const char *key, uint64_t number) {
}

static void on_flag(void *userdata, const char *key, bool is) {
}

static void on_path(void *userdata, const char *key, perfd_text text) {
        ((Listed *)userdata)->path = text;
}

static void on_id(void *userdata, const char *key, perfd_text bytes) {
        ((Listed *)userdata)->id = bytes;
}

static void on_end(void *userdata) {
        Listed *listed = userdata;
        const int r = perfd_symbolizer_set_build_id(listed->symbols, listed->path, listed->id);

        if (r < 0)
                listed->code = r;
}

static int feed_listed_ids(perfd_symbolizer *s, perfd_recording *r) {
        const perfd_feature_visitor visitor = { on_nothing, on_end, on_nothing, on_list_end, on_path, on_number, on_id, on_flag };
        Listed listed = { .symbols = s, .path = symbols_text(""), .id = symbols_text("") };
        int code = 0;

        s->has_build_ids = true;
        if (!perfd_recording_is_pipe(r) && perfd_recording_has_feature(r, BUILD_ID_FEATURE))
                code = perfd_recording_visit_feature(r, BUILD_ID_FEATURE, &visitor, &listed);
        return code < 0 ? code : listed.code;
}

/* Without a time of its own it is when the last one was. */
static int time_of(perfd_symbolizer *s, perfd_recording *r, const perfd_recorded *record, uint64_t *ret) {
        perfd_recorded_id id;
        const int code = perfd_recording_id(r, record, &id);

        if (code < 0)
                return code;
        *ret = code == 0 && (id.has & PERF_SAMPLE_TIME) != 0 ? id.time : s->last_time;
        s->last_time = *ret > s->last_time ? *ret : s->last_time;
        return 0;
}

int perfd_symbolizer_feed(perfd_symbolizer *s, perfd_recording *r, const perfd_recorded *record) {
        const bool is_big_endian = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__;
        Bytes b = { .at = record->bytes, .end = (const uint8_t *)record->bytes + record->size, .offset = record->offset };
        uint64_t time;
        int code = s->has_build_ids ? 0 : feed_listed_ids(s, r);

        if (code != 0)
                return code;
        b.swap = (perfd_recording_byte_order(r) == PERFD_BIG_ENDIAN) != is_big_endian;
        switch (record->type) {
        case PERF_RECORD_MMAP:
        case PERF_RECORD_MMAP2:
                code = time_of(s, r, record, &time);
                return code == 0 ? feed_mapping(s, &b, record, time) : code;
        case PERF_RECORD_COMM:
        case PERF_RECORD_FORK:
        case PERF_RECORD_EXIT:
                code = time_of(s, r, record, &time);
                return code == 0 ? feed_task(s, &b, record, time) : code;
        case PERF_RECORD_KSYMBOL:
                code = time_of(s, r, record, &time);
                return code == 0 ? feed_ksymbol(s, &b, time) : code;
        case BUILD_ID_RECORD:
                return feed_build_id(s, &b, record);
        }
        return 0;
}
