/* What the kernel has: its PMUs, and the build ids of itself and of its modules. */
#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <limits.h>
#include <linux/perf_event.h>
#include <stdio.h>

#include "client/recording-writer/host-kernel.h"
#include "client/recording-writer/read-file.h"

#define PMUS_MAX 4096
#define NOTES_MAX ((size_t)1 << 20)
#define MODULES_MAX 4096
#define PMUS "/sys/bus/event_source/devices"

static int add(perfd_recording_writer *w, unsigned bit, Buffer *b) {
        int code = b->failed ? writer_fail(w, -ENOMEM, "no memory") : perfd_recording_writer_add_feature(w, bit, b->bytes, b->n);

        buffer_deinit(b);
        return code;
}

int host_add_pmus(perfd_recording_writer *w) {
        Buffer b = { .n = 0 }, number = { .n = 0 };
        DIR *d = opendir(PMUS);
        const struct dirent *e;
        uint32_t n = 0;

        if (!d)
                return 0;
        buffer_put_u32(&b, 0);
        while (n < PMUS_MAX && (e = readdir(d))) {
                char path[sizeof(PMUS) + sizeof(e->d_name) + sizeof("//type")];

                (void)snprintf(path, sizeof(path), PMUS "/%s/type", e->d_name);
                number.n = 0;
                if (e->d_name[0] == '.' || buffer_add_file(path, 32, &number) != 0)
                        continue;
                buffer_put(&number, "", 1);
                if (number.failed)
                        break;
                buffer_put_u32(&b, (uint32_t)strtoul((const char *)number.bytes, NULL, 10));
                buffer_put_string(&b, e->d_name, strlen(e->d_name));
                n++;
        }
        (void)closedir(d);
        b.failed |= number.failed;
        buffer_deinit(&number);
        if (!b.failed)
                memcpy(b.bytes, &n, sizeof(n));
        return add(w, PERF_DATA_FEATURE_PMU_MAPPINGS, &b);
}

static size_t aligned(size_t n) {
        return (n + 3) & ~(size_t)3;
}

/* In /sys/kernel/notes. NULL: it has none of 1 to 20 bytes. */
static const uint8_t *find_build_id(const Buffer *notes, size_t *ret_n) {
        size_t at = 0;
        Elf64_Nhdr h;

        while (at + sizeof(h) <= notes->n) {
                size_t name = at + sizeof(h), text, next;

                memcpy(&h, notes->bytes + at, sizeof(h));
                text = name + aligned(h.n_namesz);
                next = text + aligned(h.n_descsz);
                if (next > notes->n)
                        return NULL;
                if (h.n_type == NT_GNU_BUILD_ID && h.n_namesz == 4 && memcmp(notes->bytes + name, "GNU", 4) == 0 && h.n_descsz > 0 &&
                    h.n_descsz <= PERF_DATA_BUILD_ID) {
                        *ret_n = h.n_descsz;
                        return notes->bytes + text;
                }
                at = next;
        }
        return NULL;
}

/* Of the notes in a file; of a module that has none, or was unloaded meanwhile, there is nothing to say. */
static int add_build_id(perfd_recording_writer *w, const char *file, const char *name) {
        Buffer notes = { .n = 0 };
        const uint8_t *id = NULL;
        size_t n = 0;
        int code = 0;

        if (buffer_add_file(file, NOTES_MAX, &notes) == 0)
                id = find_build_id(&notes, &n);
        if (id)
                code = perfd_recording_writer_add_build_id(w, PERF_RECORD_MISC_KERNEL, (perfd_text){ .bytes = (const char *)id, .length = n },
                                                           (perfd_text){ .bytes = name, .length = strlen(name) });
        buffer_deinit(&notes);
        return code;
}

int host_add_kernel(perfd_recording_writer *w) {
        return add_build_id(w, "/sys/kernel/notes", "[kernel.kallsyms]");
}

int host_add_modules(perfd_recording_writer *w, const char *folder) {
        DIR *d = opendir(folder);
        const struct dirent *e;
        int code = 0;

        for (size_t n = 0; d && code == 0 && n < MODULES_MAX && (e = readdir(d)); n++) {
                char file[PATH_MAX], name[sizeof(e->d_name) + 2];

                if (e->d_name[0] == '.' ||
                    snprintf(file, sizeof(file), "%s/%s/notes/.note.gnu.build-id", folder, e->d_name) >= (int)sizeof(file))
                        continue;
                (void)snprintf(name, sizeof(name), "[%s]", e->d_name);
                code = add_build_id(w, file, name);
        }
        if (d)
                (void)closedir(d);
        return code;
}
