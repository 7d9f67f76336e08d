/*
 * usage: symbol-names [--root DIR] [--build-ids DIRS] [--remote] [--monotonic] [--kallsyms FILE] [--parameters] FILE   a line for
 *            each address of each sample: its own without a callchain, else that: time, pid, ip, symbol+offset, dso, build id, address in the file, note; tabs
 *            between them
 *        symbol-names [...] --pid PID IP...   the same of addresses of a process that runs
 *        symbol-names [--lines] [--memory BYTES] [--counts] --inlined FILE   a line for each function that was inlined at each place
 *            in a file, hexadecimal, one a line of standard input, from the innermost on: place, name, file:line, note
 *        symbol-names --finds N PID IP...     finds them in turns, N in all, and prints how many ns that took and how many had a name
 */
#include <inttypes.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "client/perfd.h"

static void print(uint32_t pid, uint64_t time, const perfd_frame *f) {
        printf("%" PRIu64 "\t%" PRIu32 "\t%" PRIx64 "\t%.*s+0x%" PRIx64 "\t%.*s\t", time, pid, f->ip, (int)f->symbol.length, f->symbol.bytes, f->offset, (int)f->dso.length, f->dso.bytes);
        for (size_t i = 0; i < f->build_id.length; i++)
                printf("%02x", (unsigned char)f->build_id.bytes[i]);
        printf("\t%" PRIx64 "\t%s\n", f->address, f->note);
}

/* A line for each inlined function, behind that of the address. */
static int print_inlined(perfd_symbolizer *s, uint32_t pid, uint64_t ip) {
        const perfd_frame *frames;
        size_t n;
        int code = perfd_symbolizer_find_inlined(s, pid, 1, ip, false, &frames, &n);

        for (size_t i = 0; code == 0 && i < n; i++)
                printf("%" PRIx64 "\t%.*s\t%.*s:%" PRIu32 "\t%s\n", ip, (int)frames[i].symbol.length, frames[i].symbol.bytes, (int)frames[i].file.length,
                       frames[i].file.bytes, frames[i].line, frames[i].line_note);
        return code;
}

static int name(perfd_symbolizer *s, uint32_t pid, uint64_t time, uint64_t ip, bool is_kernel) {
        perfd_frame frame;
        int code = perfd_symbolizer_find(s, pid, time, ip, is_kernel, &frame);

        if (code == 0)
                print(pid, time, &frame);
        return code;
}

static int name_sample(perfd_symbolizer *s, perfd_recording *r, const perfd_recorded *record) {
        perfd_recorded_sample sample = { .ip = 0 };
        bool is_kernel = (record->misc & PERF_RECORD_MISC_CPUMODE_MASK) == PERF_RECORD_MISC_KERNEL;
        int code = perfd_recording_sample(r, record, &sample);

        if (code == 0 && sample.n_callchain == 0)
                return name(s, sample.id.pid, sample.id.time, sample.ip, is_kernel);
        for (size_t i = 0; code == 0 && i < sample.n_callchain; i++)
                if (sample.callchain[i] >= (uint64_t)PERF_CONTEXT_MAX)
                        is_kernel = sample.callchain[i] == (uint64_t)PERF_CONTEXT_KERNEL;
                else
                        code = name(s, sample.id.pid, sample.id.time, sample.callchain[i], is_kernel);
        return code;
}

/* As perf: what is mapped first, then the samples, whatever their order in the file is. */
static int name_recording(perfd_symbolizer *s, const char *path, bool is_feed) {
        perfd_recording *r = perfd_recording_new();
        const perfd_recorded *record;
        int code = r ? perfd_recording_open(r, path) : -1;

        while (code == 0 && (code = perfd_recording_next(r, &record)) == 0) {
                if (is_feed)
                        code = perfd_symbolizer_feed(s, r, record);
                else if (record->type == PERF_RECORD_SAMPLE)
                        code = name_sample(s, r, record);
        }
        perfd_recording_free(r);
        return code == PERFD_E_ENDED ? 0 : 1;
}

/* A file as process 7 had it at address 0, whose places in it are read from standard input. */
static int inlined_of_file(perfd_symbolizer *s, const char *path) {
        perfd_mapping m = PERFD_MAPPING_INIT;
        uint64_t address;
        int code;

        m.pid = 7;
        m.length = UINT64_C(1) << 40;
        m.path = (perfd_text){ .bytes = path, .length = strlen(path) };
        code = perfd_symbolizer_map(s, &m);
        while (code == 0 && scanf("%" SCNx64, &address) == 1)
                code = print_inlined(s, 7, address);
        return code;
}

static uint64_t now(void) {
        struct timespec t;

        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
        return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static int count(perfd_symbolizer *s, uint64_t n, uint32_t pid, char **ips, int n_ips) {
        uint64_t *list = calloc((size_t)n_ips, sizeof(*list)), n_named = 0, begun;
        perfd_frame frame;

        for (int i = 0; i < n_ips; i++)
                list[i] = strtoull(ips[i], NULL, 16);
        for (int i = 0; i < n_ips; i++)
                if (perfd_symbolizer_find(s, pid, 1, list[i], false, &frame) != 0)
                        return 1;
        begun = now();
        for (uint64_t i = 0; i < n; i++)
                if (perfd_symbolizer_find(s, pid, 1, list[i % (uint64_t)n_ips], false, &frame) == 0 && frame.symbol.length > 0)
                        n_named++;
        printf("%" PRIu64 " %" PRIu64 "\n", now() - begun, n_named);
        free(list);
        return 0;
}

int main(int argc, char **argv) {
        perfd_symbolizer_options options = PERFD_SYMBOLIZER_OPTIONS_INIT;
        perfd_symbolizer *s;
        int i = 1, code = 0;
        bool has_counts = false;

        for (; i < argc; i++)
                if (strcmp(argv[i], "--root") == 0)
                        options.root = argv[++i];
                else if (strcmp(argv[i], "--build-ids") == 0)
                        options.build_ids = argv[++i];
                else if (strcmp(argv[i], "--kallsyms") == 0)
                        options.kallsyms = argv[++i];
                else if (strcmp(argv[i], "--remote") == 0)
                        options.is_remote = true;
                else if (strcmp(argv[i], "--parameters") == 0)
                        options.has_parameters = true;
                else if (strcmp(argv[i], "--lines") == 0)
                        options.has_lines = true;
                else if (strcmp(argv[i], "--memory") == 0)
                        options.memory_max = strtoull(argv[++i], NULL, 10);
                else if (strcmp(argv[i], "--counts") == 0)
                        has_counts = true;
                else if (strcmp(argv[i], "--monotonic") == 0)
                        options.is_monotonic = true;
                else
                        break;
        s = perfd_symbolizer_new(&options);
        if (!s || i >= argc)
                return 2;
        if (strcmp(argv[i], "--inlined") == 0 && i + 1 < argc)
                code = inlined_of_file(s, argv[i + 1]);
        else if (strcmp(argv[i], "--pid") == 0 && i + 1 < argc)
                for (int k = i + 2; k < argc && code == 0; k++)
                        code = name(s, (uint32_t)atoi(argv[i + 1]), 1, strtoull(argv[k], NULL, 16), false);
        else if (strcmp(argv[i], "--finds") == 0 && i + 3 < argc)
                code = count(s, strtoull(argv[i + 1], NULL, 10), (uint32_t)atoi(argv[i + 2]), argv + i + 3, argc - i - 3);
        else
                code = name_recording(s, argv[i], true) || name_recording(s, argv[i], false);
        if (has_counts) {
                perfd_symbolizer_counts counts;

                perfd_symbolizer_get_counts(s, &counts);
                printf("%zu bytes, %" PRIu64 " loads\n", counts.bytes, counts.loads);
        }
        perfd_symbolizer_free(s);
        return code == 0 ? 0 : 1;
}
