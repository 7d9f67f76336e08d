/* What happened to the memory of processes, as others tell it. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/symbols/debuginfod.h"
#include "client/symbols/symbolizer.h"

#define MEMORY_MAX ((size_t)256 << 20)
#define MEMORY_MIN ((size_t)1 << 20)
#define KNOWN_IDS_MAX 65536
#define DISTRIBUTION_IDS "/usr/lib/debug/.build-id"

static char *default_build_ids(void) {
        const char *home = getenv("HOME");
        char *text = NULL;

        if (!home || !home[0])
                return strdup(DISTRIBUTION_IDS);
        return asprintf(&text, "%s/.debug/.build-id:%s", home, DISTRIBUTION_IDS) >= 0 ? text : NULL;
}

static bool copy(const char *from, char **ret) {
        *ret = from ? strdup(from) : NULL;
        return !from || *ret;
}

perfd_symbolizer *perfd_symbolizer_new(const perfd_symbolizer_options *options) {
        perfd_symbolizer_options known = PERFD_SYMBOLIZER_OPTIONS_INIT;
        const perfd_symbolizer_options *o = &known;
        perfd_symbolizer *s = calloc(1, sizeof(perfd_symbolizer));
        const char *kallsyms;

        if (!s)
                return NULL;
        if (options) /* of a program that was built before there were all of them */
                memcpy(&known, options, options->size < sizeof(known) ? options->size : sizeof(known));
        kallsyms = o->kallsyms || o->is_remote ? o->kallsyms : "/proc/kallsyms";
        s->generation = 1;
        s->memory_max = o->memory_max == 0 ? MEMORY_MAX : o->memory_max < MEMORY_MIN ? MEMORY_MIN : o->memory_max;
        s->is_remote = o->is_remote;
        s->is_monotonic = o->is_monotonic;
        s->has_parameters = o->has_parameters;
        s->has_lines = o->has_lines;
        s->kernel.note = "";
        s->build_ids = o->build_ids ? strdup(o->build_ids) : default_build_ids();
        if (debuginfod_new(o, &s->debuginfod) != 0 || !s->build_ids || !copy(o->root, &s->root) ||
            !copy(kallsyms && kallsyms[0] ? kallsyms : NULL, &s->kallsyms) || !copy(o->symbol_cache, &s->symbol_cache)) {
                perfd_symbolizer_free(s);
                return NULL;
        }
        return s;
}

void perfd_symbolizer_free(perfd_symbolizer *s) {
        if (!s)
                return;
        while (s->newest)
                process_free(s, s->newest);
        for (size_t i = 0; i < HASH_SIZE; i++)
                while (s->known_ids[i]) {
                        KnownId *next = s->known_ids[i]->next;

                        free(s->known_ids[i]);
                        s->known_ids[i] = next;
                }
        kernel_deinit(&s->kernel);
        debuginfod_free(s->debuginfod);
        free(s->inlined);
        free(s->unwinder.cache);
        free(s->build_ids);
        free(s->root);
        free(s->kallsyms);
        free(s->symbol_cache);
        free(s);
}

static bool begins_with(perfd_text text, const char *what) {
        return text.length >= strlen(what) && memcmp(text.bytes, what, strlen(what)) == 0;
}

/* As the kernel and perf call what is no file. */
static DsoKind kind_of(const perfd_mapping *m) {
        static const char *const anonymous[] = { "//anon", "/anon_hugepage", "[anon:", "[heap]", "[stack", "/memfd:", "/dev/zero", "/SYSV" };

        if (m->is_kernel)
                return DSO_KERNEL;
        if (m->path.length == strlen("[vdso]") && begins_with(m->path, "[vdso]"))
                return DSO_VDSO;
        if (m->path.length == 0)
                return DSO_ANONYMOUS;
        for (size_t i = 0; i < sizeof(anonymous) / sizeof(*anonymous); i++)
                if (begins_with(m->path, anonymous[i]))
                        return DSO_ANONYMOUS;
        return DSO_FILE;
}

/* ".../jit-PID.dump", whose mapping says that it is written. */
static int note_dump(Process *p, const perfd_mapping *m) {
        const char *slash = memrchr(m->path.bytes, '/', m->path.length);
        const char *name = slash ? slash + 1 : m->path.bytes;
        const size_t n = m->path.length - (size_t)(name - m->path.bytes);

        if (n < strlen("jit-0.dump") || n > 64 || memcmp(name, "jit-", 4) != 0 || memcmp(name + n - 5, ".dump", 5) != 0 || p->dump.path)
                return 0;
        p->dump = (JitDump){ .path = strndup(m->path.bytes, m->path.length), .time = m->time };
        return p->dump.path ? 0 : -ENOMEM;
}

/* Of the kernel itself it says no more than where _text was. */
static int map_kernel(perfd_symbolizer *s, const perfd_mapping *m) {
        if (begins_with(m->path, "[kernel.kallsyms]") || begins_with(m->path, "[guest.kernel.kallsyms]")) {
                if (begins_with(m->path, "[kernel.kallsyms]_text"))
                        s->recorded_text = m->offset;
                if (begins_with(m->path, "[kernel.kallsyms]") && m->build_id.length > 0) {
                        s->kernel_id.n = m->build_id.length;
                        memcpy(s->kernel_id.bytes, m->build_id.bytes, m->build_id.length);
                }
                s->generation++;
                return 1;
        }
        return 0;
}

#define MODULE_NAME_MAX 64 /* bytes: more than the kernel's MODULE_NAME_LEN */

/* "/lib/modules/6.1.0/kernel/fs/nf-ext.ko.xz" is the module "[nf_ext]", as the kernel and perf call it. False: it is none. */
static bool module_name(perfd_text path, char ret[MODULE_NAME_MAX]) {
        static const char *const ends[] = { ".ko", ".ko.gz", ".ko.xz", ".ko.zst" };
        const char *slash = memrchr(path.bytes, '/', path.length), *name = slash ? slash + 1 : path.bytes;
        const size_t n = path.length - (size_t)(name - path.bytes);

        for (size_t i = 0; slash && i < sizeof(ends) / sizeof(*ends); i++) {
                const size_t n_end = strlen(ends[i]), n_name = n - n_end;

                if (n <= n_end || n_name > MODULE_NAME_MAX - 3 || memcmp(name + n_name, ends[i], n_end) != 0)
                        continue;
                (void)snprintf(ret, MODULE_NAME_MAX, "[%.*s]", (int)n_name, name);
                for (char *c = ret; *c; c++)
                        if (*c == '-')
                                *c = '_';
                return true;
        }
        return false;
}

static Process *kernel_process(perfd_symbolizer *s) {
        if (!s->kernel_process)
                s->kernel_process = process_get(s, NOWHERE, true);
        return s->kernel_process;
}

int perfd_symbolizer_map(perfd_symbolizer *s, const perfd_mapping *m) {
        perfd_mapping whose = *m;
        Mapping one = { .start = m->start, .end = m->start + m->length, .time = m->time, .offset = m->offset };
        char module[MODULE_NAME_MAX];
        BuildId id;
        Process *p;

        if (m->length > UINT64_MAX - m->start || m->build_id.length > BUILD_ID_MAX)
                return PERFD_E_INVALID;
        if (m->length == 0 || (m->is_kernel && map_kernel(s, m)))
                return 0;
        whose.pid = m->is_kernel ? NOWHERE : m->pid;
        p = m->is_kernel ? kernel_process(s) : process_get(s, m->pid, true);
        if (!p || (!m->is_kernel && note_dump(p, m) != 0))
                return -ENOMEM;
        if (m->is_kernel && module_name(m->path, module)) {
                id = dso_known_id(s, m); /* the recording's list has it by its path */
                whose.build_id = (perfd_text){ .bytes = (const char *)id.bytes, .length = id.n };
                whose.path = symbols_text(module);
        }
        one.dso = dso_get(s, kind_of(m), &whose);
        if (!one.dso)
                return -ENOMEM;
        if (whose.path.bytes == module && !one.dso->module)
                one.dso->module = strndup(m->path.bytes, m->path.length); /* without memory its functions have no names */
        return process_add(s, p, &p->maps, &one);
}

static int add_life(perfd_symbolizer *s, uint32_t pid, const Life *life) {
        Process *p = process_get(s, pid, true);

        return p ? process_add_life(s, p, life) : -ENOMEM;
}

int perfd_symbolizer_exec(perfd_symbolizer *s, uint32_t pid, uint64_t time) {
        return add_life(s, pid, &(Life){ .time = time, .kind = LIFE_EXEC });
}

int perfd_symbolizer_fork(perfd_symbolizer *s, uint32_t pid, uint32_t ppid, uint64_t time) {
        return pid == ppid ? 0 : add_life(s, pid, &(Life){ .time = time, .kind = LIFE_FORK, .parent = ppid });
}

int perfd_symbolizer_exit(perfd_symbolizer *s, uint32_t pid) {
        Process *p = process_get(s, pid, false);

        if (p)
                process_retire(s, p);
        return 0;
}

int perfd_symbolizer_ksymbol(perfd_symbolizer *s, uint64_t time, uint64_t addr, uint64_t length, perfd_text name, bool is_unregister) {
        return symbolizer_add_code(s, time, addr, length, name, name, is_unregister);
}

int symbolizer_add_code(perfd_symbolizer *s, uint64_t time, uint64_t addr, uint64_t length, perfd_text name, perfd_text dso, bool is_unregister) {
        perfd_mapping m = PERFD_MAPPING_INIT;
        Mapping one = { .start = addr, .end = addr + length, .time = time };
        Process *p = kernel_process(s);

        if (length > UINT64_MAX - addr)
                return PERFD_E_INVALID;
        if (!p)
                return -ENOMEM;
        if (length == 0)
                return 0;
        m.pid = NOWHERE;
        m.path = dso;
        if (!is_unregister) {
                one.dso = dso_get(s, DSO_CODE, &m);
                one.name = strndup(name.bytes, name.length);
                if (!one.dso || !one.name) {
                        dso_unref(s, one.dso);
                        free(one.name);
                        return -ENOMEM;
                }
        }
        return process_add(s, p, &p->maps, &one);
}

int perfd_symbolizer_set_build_id(perfd_symbolizer *s, perfd_text path, perfd_text build_id) {
        KnownId *known, **bucket = s->known_ids + path_hash(path);

        if (build_id.length == 0 || build_id.length > BUILD_ID_MAX || path.length > PATH_LENGTH_MAX)
                return PERFD_E_INVALID;
        if (begins_with(path, "[kernel.kallsyms]")) {
                s->kernel_id.n = build_id.length;
                memcpy(s->kernel_id.bytes, build_id.bytes, build_id.length);
                return 0;
        }
        if (s->n_known_ids == KNOWN_IDS_MAX)
                return 0;
        known = calloc(1, sizeof(KnownId) + path.length + 1);
        if (!known)
                return -ENOMEM;
        known->next = *bucket;
        known->n_path = path.length;
        memcpy(known->path, path.bytes, path.length);
        known->id.n = build_id.length;
        memcpy(known->id.bytes, build_id.bytes, build_id.length);
        *bucket = known;
        s->n_known_ids++;
        return 0;
}

void perfd_symbolizer_get_counts(const perfd_symbolizer *s, perfd_symbolizer_counts *ret) {
        *ret = s->counts;
}
