/*
 * Sections that describe this host, in the forms of the write_*() of perf's util/header.c. What the host does not say is left out, as perf
 * does: these are comments for people who read the recording elsewhere.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "client/recording-writer/host-kernel.h"
#include "client/recording-writer/writer.h"

#define CPUS_MAX 8192
#define NODES_MAX 1024
#define LINE 256

static int add(perfd_recording_writer *w, unsigned bit, Buffer *b) {
        int code = b->failed ? writer_fail(w, -ENOMEM, "no memory") : perfd_recording_writer_add_feature(w, bit, b->bytes, b->n);

        buffer_deinit(b);
        return code;
}

static int add_text(perfd_recording_writer *w, unsigned bit, const char *text) {
        Buffer b = { .n = 0 };

        buffer_put_string(&b, text, strlen(text));
        return add(w, bit, &b);
}

/* The first line of a small file, without its end. False: there is none. */
static bool read_line(const char *path, char line[static LINE]) {
        FILE *f = fopen(path, "re");
        const bool is_there = f && fgets(line, LINE, f);

        if (f)
                (void)fclose(f);
        if (is_there)
                line[strcspn(line, "\n")] = '\0';
        return is_there;
}

/* ---- names ------------------------------------------------------------------------------------------------------------------- */

static int add_names(perfd_recording_writer *w) {
        struct utsname u;
        int code;

        if (uname(&u) != 0)
                return writer_fail(w, -errno, "uname: %s", strerror(errno));
        code = add_text(w, PERF_DATA_FEATURE_HOSTNAME, u.nodename);
        if (code == 0)
                code = add_text(w, PERF_DATA_FEATURE_OSRELEASE, u.release);
        if (code == 0)
                code = add_text(w, PERF_DATA_FEATURE_ARCH, u.machine);
        return code == 0 ? add_text(w, PERF_DATA_FEATURE_VERSION, "perfd " PERFD_VERSION) : code;
}

static int add_command_line(perfd_recording_writer *w, const char *const *words, size_t n) {
        Buffer b = { .n = 0 };

        buffer_put_u32(&b, (uint32_t)n);
        for (size_t i = 0; i < n; i++)
                buffer_put_string(&b, words[i], strlen(words[i]));
        return add(w, PERF_DATA_FEATURE_CMDLINE, &b);
}

/* ---- the CPU and memory -------------------------------------------------------------------------------------------------------- */

typedef struct Cpu {
        char vendor[LINE], name[LINE];
        unsigned family, model, stepping;
        bool has_numbers;
} Cpu;

static void take_text(const char *value, char to[static LINE]) {
        (void)snprintf(to, LINE, "%.*s", (int)strcspn(value, "\n"), value);
}

/* Of the first CPU in /proc/cpuinfo: "model name\t: Intel ..." */
static void read_cpu(Cpu *c) {
        FILE *f = fopen("/proc/cpuinfo", "re");
        char line[LINE];

        while (f && fgets(line, sizeof(line), f) && line[0] != '\n') {
                const char *value = strstr(line, ": ");

                if (!value)
                        continue;
                value += 2;
                if (strncmp(line, "vendor_id", 9) == 0)
                        take_text(value, c->vendor);
                else if (strncmp(line, "model name", 10) == 0)
                        take_text(value, c->name);
                else if (strncmp(line, "cpu family", 10) == 0)
                        c->family = (unsigned)strtoul(value, NULL, 10);
                else if (strncmp(line, "model\t", 6) == 0)
                        c->model = (unsigned)strtoul(value, NULL, 10);
                else if (strncmp(line, "stepping", 8) == 0) {
                        c->stepping = (unsigned)strtoul(value, NULL, 10);
                        c->has_numbers = true;
                }
        }
        if (f)
                (void)fclose(f);
}

static int add_cpu(perfd_recording_writer *w) {
        const long there = sysconf(_SC_NPROCESSORS_CONF), online = sysconf(_SC_NPROCESSORS_ONLN);
        Buffer b = { .n = 0 };
        Cpu c = { .family = 0 };
        char id[2 * LINE];
        int code;

        buffer_put_u32(&b, (uint32_t)there);
        buffer_put_u32(&b, (uint32_t)online);
        code = add(w, PERF_DATA_FEATURE_NRCPUS, &b);
        read_cpu(&c);
        if (code == 0 && c.name[0])
                code = add_text(w, PERF_DATA_FEATURE_CPUDESC, c.name);
        (void)snprintf(id, sizeof(id), "%s,%u,%u,%u", c.vendor, c.family, c.model, c.stepping);
        return code == 0 && c.vendor[0] && c.has_numbers ? add_text(w, PERF_DATA_FEATURE_CPUID, id) : code;
}

/* Of "MemTotal:  4026608 kB" or "Node 0 MemTotal: ...". */
static uint64_t read_kb(const char *path, const char *key) {
        FILE *f = fopen(path, "re");
        char line[LINE];
        uint64_t kb = 0;

        while (f && fgets(line, sizeof(line), f)) {
                const char *at = strstr(line, key);

                if (!at)
                        continue;
                kb = strtoull(at + strlen(key), NULL, 10);
                break;
        }
        if (f)
                (void)fclose(f);
        return kb;
}

static int add_memory(perfd_recording_writer *w) {
        const uint64_t kb = read_kb("/proc/meminfo", "MemTotal:");

        return kb > 0 ? perfd_recording_writer_add_feature(w, PERF_DATA_FEATURE_TOTAL_MEM, &kb, sizeof(kb)) : 0;
}

/* ---- topology -------------------------------------------------------------------------------------------------------------------- */

/* The lists of siblings, each once. False: this host does not say them. */
static bool put_siblings(Buffer *b, long n_cpus, const char *file) {
        const size_t at = b->n;
        uint32_t n = 0;
        char path[LINE], line[LINE];

        buffer_put_u32(b, 0);
        for (long cpu = 0; cpu < n_cpus; cpu++) {
                (void)snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%ld/topology/%s", cpu, file);
                if (!read_line(path, line))
                        continue;
                if (strtol(line, NULL, 10) != cpu)
                        continue; /* it is in the list of that one */
                buffer_put_string(b, line, strlen(line));
                n++;
        }
        if (!b->failed)
                memcpy(b->bytes + at, &n, sizeof(n));
        return n > 0;
}

static uint32_t read_number(long cpu, const char *file) {
        char path[LINE], line[LINE];

        (void)snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%ld/topology/%s", cpu, file);
        return read_line(path, line) ? (uint32_t)strtol(line, NULL, 10) : UINT32_MAX;
}

static int add_cpu_topology(perfd_recording_writer *w) {
        const long n = sysconf(_SC_NPROCESSORS_CONF);
        Buffer b = { .n = 0 };

        if (n < 1 || n > CPUS_MAX || !put_siblings(&b, n, "core_siblings_list") || !put_siblings(&b, n, "thread_siblings_list")) {
                buffer_deinit(&b);
                return 0;
        }
        for (long cpu = 0; cpu < n; cpu++) {
                buffer_put_u32(&b, read_number(cpu, "core_id"));
                buffer_put_u32(&b, read_number(cpu, "physical_package_id"));
        }
        return add(w, PERF_DATA_FEATURE_CPU_TOPOLOGY, &b);
}

static int add_numa_topology(perfd_recording_writer *w) {
        Buffer b = { .n = 0 };
        uint32_t n = 0;
        char path[LINE], line[LINE];

        buffer_put_u32(&b, 0);
        for (uint32_t node = 0; node < NODES_MAX; node++) {
                (void)snprintf(path, sizeof(path), "/sys/devices/system/node/node%" PRIu32 "/cpulist", node);
                if (!read_line(path, line))
                        continue;
                (void)snprintf(path, sizeof(path), "/sys/devices/system/node/node%" PRIu32 "/meminfo", node);
                buffer_put_u32(&b, node);
                buffer_put_u64(&b, read_kb(path, "MemTotal:"));
                buffer_put_u64(&b, read_kb(path, "MemFree:"));
                buffer_put_string(&b, line, strlen(line));
                n++;
        }
        if (!b.failed)
                memcpy(b.bytes, &n, sizeof(n));
        if (n > 0)
                return add(w, PERF_DATA_FEATURE_NUMA_TOPOLOGY, &b);
        buffer_deinit(&b);
        return 0;
}

int perfd_recording_writer_add_host(perfd_recording_writer *w, const char *const *command_line, size_t n) {
        int code = add_names(w);

        if (code == 0)
                code = add_command_line(w, command_line, n);
        if (code == 0)
                code = add_cpu(w);
        if (code == 0)
                code = add_memory(w);
        if (code == 0)
                code = add_cpu_topology(w);
        if (code == 0)
                code = add_numa_topology(w);
        if (code == 0)
                code = host_add_pmus(w);
        if (code == 0)
                code = host_add_kernel(w);
        return code == 0 ? host_add_modules(w, "/sys/module") : code;
}
