/*
 * COMPRESSED says how much perf has to make room for, which is what was read. Of TRACING_DATA perf wants a format for each tracepoint: what all
 * of them begin with is known, and nothing else is said, so that their samples have no fields, and the names of their numbers.
 */
#include "client/recording/damage.h"
#include "client/recording/decompress.h"
#include "client/recording/made-sections.h"

#include <byteswap.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COMPRESSED_ZSTD 1
#define COMPRESSED_LEAST 524288 /* bytes: perf's buffers have no less */
#define PAGE 4096
#define TRACEPOINT 2 /* PERF_TYPE_TRACEPOINT */
#define SYSTEM "tracepoint"

static uint32_t turned_u32(const perfd_recording *r, uint32_t number) {
        return r->is_swapped ? bswap_32(number) : number;
}

static void put_u32(FILE *f, const perfd_recording *r, uint32_t number) {
        number = turned_u32(r, number);
        (void)fwrite(&number, 1, sizeof(number), f);
}

static void put_u64(FILE *f, const perfd_recording *r, uint64_t number) {
        number = r->is_swapped ? bswap_64(number) : number;
        (void)fwrite(&number, 1, sizeof(number), f);
}

static bool is_there(const perfd_recording *r, unsigned bit) {
        return recording_has(r, bit) && (r->cut[bit / 64] >> bit % 64 & 1) == 0;
}

/* Closes what was written to the section. */
static int end(perfd_recording *r, FILE *f) {
        return fclose(f) == 0 ? 0 : recording_fail(r, -ENOMEM, "no memory");
}

/* perf takes as much memory for what comes out of a compressed record as it says, and no more comes out. */
static int make_compressed(MadeSection *s, perfd_recording *r) {
        const uint64_t max = decompress_max(r);
        FILE *f;

        if (max == 0 || is_there(r, PERF_DATA_FEATURE_COMPRESSED))
                return 0;
        if (max > UINT32_MAX - PAGE)
                return recording_fail(r, PERFD_E_INVALID, "a compressed record becomes %" PRIu64 " bytes: perf reads less than 4 GiB", max);
        f = open_memstream(&s->bytes, &s->n);
        if (!f)
                return recording_fail(r, -ENOMEM, "no memory");
        put_u32(f, r, 1); /* version */
        put_u32(f, r, COMPRESSED_ZSTD);
        put_u32(f, r, 1); /* level, and ratio: nobody knows */
        put_u32(f, r, 1);
        put_u32(f, r, max > COMPRESSED_LEAST ? (uint32_t)((max + PAGE - 1) / PAGE * PAGE) : COMPRESSED_LEAST);
        return end(r, f);
}

static bool is_first_tracepoint(const perfd_recording *r, size_t i) {
        const perfd_recorded_event *e = &r->events[i].shown;

        if (e->type != TRACEPOINT)
                return false;
        for (size_t k = 0; k < i; k++)
                if (r->events[k].shown.type == TRACEPOINT && r->events[k].shown.config == e->config)
                        return false;
        return true;
}

static uint32_t count_tracepoints(const perfd_recording *r) {
        uint32_t n = 0;

        for (size_t i = 0; i < r->n_events; i++)
                n += is_first_tracepoint(r, i);
        return n;
}

static void put_text(FILE *f, const perfd_recording *r, const char *text) {
        put_u64(f, r, strlen(text));
        (void)fputs(text, f);
}

/* With what the raw bytes of each tracepoint begin with, and one field of no bytes, as libtraceevent wants one. */
static void put_format(FILE *f, const perfd_recording *r, uint64_t id) {
        char text[512];

        (void)snprintf(text, sizeof(text), "name: id_%" PRIu64 "\nID: %" PRIu64 "\nformat:\n"
                       "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
                       "\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n"
                       "\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n"
                       "\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n"
                       "\tfield:char unknown[0];\toffset:8;\tsize:0;\tsigned:0;\n\nprint fmt: \"\"\n", id, id);
        put_text(f, r, text);
}

/* The layout is that of tracing.c, version 0.6 of perf. Where perf would not read an empty text, it is one that says nothing. */
static int make_tracing(MadeSection *s, perfd_recording *r) {
        static const char page[] = "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n"
                                   "\tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n\tfield: char data;\toffset:16;\tsize:4080;\tsigned:0;\n";
        static const char magic[] = "\027\010\104tracing0.6";
        const uint8_t is_big = (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__) != r->is_swapped;
        const uint32_t n = is_there(r, PERF_DATA_FEATURE_TRACING_DATA) ? 0 : count_tracepoints(r);
        FILE *f;

        if (n == 0)
                return 0;
        f = open_memstream(&s->bytes, &s->n);
        if (!f)
                return recording_fail(r, -ENOMEM, "no memory");
        (void)fwrite(magic, 1, sizeof(magic), f);
        (void)fwrite((const uint8_t[]){ is_big, sizeof(uint64_t) }, 1, 2, f); /* a long has 8 bytes */
        put_u32(f, r, PAGE);
        (void)fwrite("header_page", 1, sizeof("header_page"), f);
        put_text(f, r, page);
        (void)fwrite("header_event", 1, sizeof("header_event"), f);
        put_u64(f, r, 0);
        put_u32(f, r, 0); /* formats of ftrace's own */
        put_u32(f, r, 1); /* systems */
        (void)fwrite(SYSTEM, 1, sizeof(SYSTEM), f);
        put_u32(f, r, n);
        for (size_t i = 0; i < r->n_events; i++)
                if (is_first_tracepoint(r, i))
                        put_format(f, r, r->events[i].shown.config);
        put_u32(f, r, 0); /* kallsyms */
        put_u32(f, r, 0); /* printk_formats */
        put_text(f, r, "0 <idle>\n"); /* saved_cmdlines */
        return end(r, f);
}

int made_sections_init(MadeSections *m, perfd_recording *r) {
        int code;

        *m = (MadeSections){ .compressed.n = 0 };
        code = make_compressed(&m->compressed, r);
        return code == 0 ? make_tracing(&m->tracing, r) : code;
}

void made_sections_deinit(MadeSections *m) {
        free(m->compressed.bytes);
        free(m->tracing.bytes);
        *m = (MadeSections){ .compressed.n = 0 };
}

const MadeSection *made_section(const MadeSections *m, unsigned bit) {
        const MadeSection *s = bit == PERF_DATA_FEATURE_COMPRESSED ? &m->compressed : bit == PERF_DATA_FEATURE_TRACING_DATA ? &m->tracing : NULL;

        return s && s->bytes ? s : NULL;
}
