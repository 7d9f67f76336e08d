/*
 * TRACING_DATA has the form of perf's util/trace-event-info.c, version 0.6:
 *
 *      "\x17\x08\x44" "tracing" "0.6\0" | u8 byte order, u8 size of long, u32 page
 *      "header_page\0" u64 n, n bytes | "header_event\0" u64 n, n bytes
 *      u32 files of ftrace, none | u32 systems, of each: its name, u32 events, of each: u64 n, n bytes of its format
 *      u32 n of kallsyms, none | u32 n, printk_formats | u64 n, saved_cmdlines
 *
 * The last two are in the daemon's tracefs alone: of this host they are read, if this user may, and of another one they are empty.
 */
#include "client/perfctl/recorder/host-sections.h"

#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/perfctl/names/recorded-host.h"

#define TRACEFS "/sys/kernel/tracing/"
#define TEXT_MAX ((size_t)64 << 20)
#define HOSTNAME 3 /* the bits of these sections */
#define TRACING_DATA 1
#define OSRELEASE 4
#define VERSION 5
#define ARCH 6
#define NRCPUS 7
#define CMDLINE 11
#define STRING ((size_t)64) /* what the length of one is a multiple of */

/* In memory: a FILE that cannot be written has no memory. */
typedef struct Section {
        char *bytes;
        size_t n;
        FILE *file;
} Section;

static void begin(Section *s) {
        *s = (Section){ .bytes = NULL };
        s->file = must_have(open_memstream(&s->bytes, &s->n));
}

static void put(Section *s, const void *bytes, size_t n) {
        if (n > 0 && fwrite(bytes, 1, n, s->file) != n)
                (void)must_have(NULL);
}

static void put_u32(Section *s, size_t n) {
        put(s, &(uint32_t){ (uint32_t)n }, sizeof(uint32_t));
}

static void put_u64(Section *s, size_t n) {
        put(s, &(uint64_t){ n }, sizeof(uint64_t));
}

/* Its text with zeros up to a multiple of 64, of which there is one at least. */
static void put_string(Section *s, const char *text) {
        static const char zeros[STRING];
        const size_t n = strlen(text), length = (n + STRING) / STRING * STRING;

        put_u32(s, length);
        put(s, text, n);
        put(s, zeros, length - n);
}

static void end(Section *s, Recorder *r, unsigned bit) {
        if (fclose(s->file) != 0)
                (void)must_have(NULL);
        recorder_check(r, perfd_recording_writer_add_feature(r->writer, bit, s->bytes, s->n));
        free(s->bytes);
}

/* ---- tracing data --------------------------------------------------------------------------------------------------------------- */

static const perfd_event_format *tracepoint_of(const Recorder *r, size_t i) {
        return *r->events[i]->format->tracepoint ? r->events[i]->format : NULL;
}

static bool is_of_system(const char *tracepoint, const char *other) {
        const size_t n = strcspn(tracepoint, ":");

        return strncmp(tracepoint, other, n + 1) == 0;
}

/* Whether an event before that one is of its system, or is the same tracepoint: then it is there already. */
static bool is_earlier(const Recorder *r, size_t at, bool by_system) {
        const char *name = tracepoint_of(r, at)->tracepoint;

        for (size_t i = 0; i < at; i++) {
                const perfd_event_format *f = tracepoint_of(r, i);

                if (f && (by_system ? is_of_system(name, f->tracepoint) : strcmp(name, f->tracepoint) == 0))
                        return true;
        }
        return false;
}

static void put_system(const Recorder *r, size_t first, Section *s) {
        const char *name = tracepoint_of(r, first)->tracepoint;
        uint32_t n = 0;

        for (size_t i = first; i < r->n_events; i++)
                n += tracepoint_of(r, i) && is_of_system(name, tracepoint_of(r, i)->tracepoint) && !is_earlier(r, i, false);
        put(s, name, strcspn(name, ":"));
        put(s, "", 1);
        put_u32(s, n);
        for (size_t i = first; i < r->n_events; i++) {
                const perfd_event_format *f = tracepoint_of(r, i);

                if (!f || !is_of_system(name, f->tracepoint) || is_earlier(r, i, false))
                        continue;
                put_u64(s, f->format.length);
                put(s, f->format.bytes, f->format.length);
        }
}

static void put_systems(const Recorder *r, Section *s) {
        uint32_t n = 0;

        for (size_t i = 0; i < r->n_events; i++)
                n += tracepoint_of(r, i) && !is_earlier(r, i, true);
        put_u32(s, n);
        for (size_t i = 0; i < r->n_events; i++)
                if (tracepoint_of(r, i) && !is_earlier(r, i, true))
                        put_system(r, i, s);
}

static void put_header(Section *s, const char *name, perfd_text text) {
        put(s, name, strlen(name) + 1);
        put_u64(s, text.length);
        put(s, text.bytes, text.length);
}

/* malloc'ed; of a file that cannot be read, or is too long, nothing. */
static char *read_here(const char *path, size_t *ret) {
        FILE *f = fopen(path, "re");
        size_t room = (size_t)1 << 16;
        char *bytes = must_have(malloc(room));

        *ret = 0;
        while (f && *ret < TEXT_MAX) {
                const size_t n = fread(bytes + *ret, 1, room - *ret, f);

                *ret += n;
                if (n == 0)
                        break;
                if (*ret == room)
                        bytes = must_have(realloc(bytes, room *= 2));
        }
        if (f && (ferror(f) || *ret >= TEXT_MAX))
                *ret = 0;
        if (f)
                (void)fclose(f);
        return bytes;
}

static void put_here(const Recorder *r, Section *s, const char *path, bool has_long_size) {
        size_t n = 0;
        char *text = r->p->host ? NULL : read_here(path, &n);

        if (has_long_size)
                put_u64(s, n);
        else
                put_u32(s, n);
        put(s, text, n);
        free(text);
}

void host_sections_put_tracing(Recorder *r) {
        static const char magic[] = { 0x17, 0x08, 0x44, 't', 'r', 'a', 'c', 'i', 'n', 'g', '0', '.', '6', '\0' };
        const perfd_format_host *host = formats_host(&r->formats);
        size_t n = 0;
        Section s;

        for (size_t i = 0; i < r->n_events; i++)
                n += tracepoint_of(r, i) != NULL;
        if (n == 0)
                return;
        begin(&s);
        put(&s, magic, sizeof(magic));
        put(&s, &(uint8_t){ host->big_endian }, 1);
        put(&s, &(uint8_t){ (uint8_t)host->long_bytes }, 1);
        put_u32(&s, host->page_bytes);
        put_header(&s, "header_page", host->header_page);
        put_header(&s, "header_event", host->header_event);
        put_u32(&s, 0);
        put_systems(r, &s);
        put_u32(&s, 0);
        put_here(r, &s, TRACEFS "printk_formats", false);
        put_here(r, &s, TRACEFS "saved_cmdlines", true);
        end(&s, r, TRACING_DATA);
}

/* ---- another host ---------------------------------------------------------------------------------------------------------------- */

static void put_text(Recorder *r, unsigned bit, const char *text) {
        Section s;

        if (r->has_failed || !text || !text[0])
                return;
        begin(&s);
        put_string(&s, text);
        end(&s, r, bit);
}

static void put_cpus(Recorder *r, const perfd_format_host *host) {
        const uint32_t cpus[2] = { host->n_cpus, host->n_online_cpus };

        if (!r->has_failed && cpus[0] > 0)
                recorder_check(r, perfd_recording_writer_add_feature(r->writer, NRCPUS, cpus, sizeof(cpus)));
}

static void put_command_line(Recorder *r, const char *const *words, size_t n) {
        Section s;

        if (r->has_failed)
                return;
        begin(&s);
        put_u32(&s, n);
        for (size_t i = 0; i < n; i++)
                put_string(&s, words[i]);
        end(&s, r, CMDLINE);
}

void host_sections_put_remote(Recorder *r, const char *const *command_line, size_t n) {
        const perfd_format_host *host = formats_host(&r->formats);

        put_text(r, HOSTNAME, r->remote.name);
        put_text(r, OSRELEASE, r->remote.kernel);
        put_text(r, VERSION, "perfd " PERFD_VERSION RECORDED_FROM_AFAR);
        put_text(r, ARCH, host->machine);
        put_cpus(r, host);
        put_command_line(r, command_line, n);
}
