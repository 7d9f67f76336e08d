/*
 * Debug files that a distribution or perf keeps apart: below directories of build ids, which say by themselves what they belong to, and by
 * the name in .gnu_debuglink, which holds only with the CRC that stands beside it; and what a server has of them.
 */
#include <errno.h>
#include <lzma.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/symbols/debuginfod.h"
#include "client/symbols/open-file.h"
#include "client/symbols/symbolizer.h"

#define CRC_FILE_MAX (INT64_C(4) << 30) /* bytes that are read for a CRC */
#define CRC_SIZE ((size_t)128 * 1024)

static bool has_id(const ElfFile *f, const BuildId *id) {
        return f->id.n == id->n && memcmp(f->id.bytes, id->bytes, id->n) == 0;
}

static bool try_by_id(const perfd_symbolizer *s, const char *path, const BuildId *id, bool is_debug, int *ret_fd, ElfFile *ret) {
        ElfFile f = ELF_FILE_NULL;
        int fd = open_file(NULL, path, NULL);

        if (fd < 0)
                return false;
        if (elf_file_open(&f, fd, s->memory_max) && has_id(&f, id) && (!is_debug || f.has_symbols)) {
                *ret_fd = fd;
                *ret = f;
                return true;
        }
        elf_file_close(&f);
        close(fd);
        return false;
}

bool debug_file_by_id(const perfd_symbolizer *s, const BuildId *id, bool is_debug, int *ret_fd, ElfFile *ret) {
        static const char *const debug_names[] = { ".debug", "/debug", "/elf" }, *const program_names[] = { "/elf", "" };
        const char *const *names = is_debug ? debug_names : program_names;
        const size_t n_names = is_debug ? 3 : 2;
        char hex[2 * BUILD_ID_MAX + 2], path[PATH_LENGTH_MAX + 1];
        size_t n = 0;

        if (id->n < 2)
                return false;
        for (size_t i = 0; i < id->n; i++)
                n += (size_t)sprintf(hex + n, i == 1 ? "/%02x" : "%02x", id->bytes[i]);
        for (const char *at = s->build_ids; *at;) {
                const size_t length = strcspn(at, ":");

                for (size_t i = 0; i < n_names && length > 0; i++)
                        if (snprintf(path, sizeof(path), "%.*s/%s%s", (int)length, at, hex, names[i]) < (int)sizeof(path) &&
                            try_by_id(s, path, id, is_debug, ret_fd, ret))
                                return true;
                at += length + (at[length] == ':');
        }
        return false;
}

bool debug_file_of_server(const perfd_symbolizer *s, const BuildId *id, bool is_debug, int *ret_fd, ElfFile *ret) {
        ElfFile f = ELF_FILE_NULL;
        char *path;
        int fd = debuginfod_get(s->debuginfod, id, is_debug, &path);
        bool fits;

        if (fd < 0)
                return false;
        fits = elf_file_open(&f, fd, s->memory_max) && has_id(&f, id) && (!is_debug || f.has_symbols);
        if (fits) {
                *ret_fd = fd;
                *ret = f;
        } else {
                elf_file_close(&f);
                close(fd);
                debuginfod_refuse(s->debuginfod, id, path);
        }
        free(path);
        return fits;
}

/* Of all that an fd has. False: it cannot be read, or is too long */
static bool compute_crc(int fd, uint32_t *ret) {
        uint8_t *bytes = malloc(CRC_SIZE);
        uint32_t crc = 0;
        int64_t at = 0;
        ssize_t n = -1;

        while (bytes && at < CRC_FILE_MAX && (n = pread(fd, bytes, CRC_SIZE, at)) > 0) {
                crc = lzma_crc32(bytes, (size_t)n, crc);
                at += n;
        }
        free(bytes);
        *ret = crc;
        return n == 0;
}

static bool try_link(const perfd_symbolizer *s, const char *root, const char *path, const ElfFile *of, int *ret_fd, ElfFile *ret) {
        ElfFile f = ELF_FILE_NULL;
        uint32_t crc;
        int fd = open_file(root, path, NULL);

        if (fd < 0)
                return false;
        if (compute_crc(fd, &crc) && crc == of->link_crc && elf_file_open(&f, fd, s->memory_max) && f.has_symbols &&
            (of->id.n == 0 || f.id.n == 0 || has_id(&f, &of->id))) {
                *ret_fd = fd;
                *ret = f;
                return true;
        }
        elf_file_close(&f);
        close(fd);
        return false;
}

bool debug_file_by_link(const perfd_symbolizer *s, const char *root, const char *path, const ElfFile *of, int *ret_fd, ElfFile *ret) {
        static const char *const places[][2] = { { "", "" }, { "", "/.debug" }, { "/usr/lib/debug", "" } }; /* before and behind its directory */
        const char *slash = strrchr(path, '/');
        const int folder = slash ? (int)(slash - path) : 0;
        char tried[2 * PATH_LENGTH_MAX];

        if (!of->link[0] || strcmp(of->link, "..") == 0 || strcmp(of->link, ".") == 0 || !slash)
                return false;
        for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++) {
                const int n = snprintf(tried, sizeof(tried), "%s%.*s%s/%s", places[i][0], folder, path, places[i][1], of->link);

                if (n > 0 && n < (int)sizeof(tried) && try_link(s, root, tried, of, ret_fd, ret))
                        return true;
        }
        return false;
}
