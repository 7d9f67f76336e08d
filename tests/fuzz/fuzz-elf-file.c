/*
 * A file as an ELF file: opened, all its functions listed and found, all its static probes with their arguments.
 * Whatever the file says, each place that comes out lies in it.
 */
#include <stdlib.h>
#include <string.h>

#include "daemon/base/cleanup.h"
#include "daemon/kernel/elf-file.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

#define MUST(x)                                                                                                        \
        do {                                                                                                           \
                if (!(x))                                                                                              \
                        abort();                                                                                       \
        } while (0)

static void check_refusal(int r, const Explanation *e) {
        MUST(r > 0 && r < _REFUSED_MAX && e->reason && e->text[0]);
}

static void find(const ElfFile *f, const char *name, uint64_t offset, size_t length) {
        Explanation e = EXPLANATION_NULL;
        ElfPlace place, same;
        int r = elf_file_find(f, name, offset, &place, &e);

        if (r != 0) {
                check_refusal(r, &e);
                return;
        }
        MUST(place.file_offset < length && memchr(place.symbol, '\0', sizeof(place.symbol)));
        MUST(elf_file_find_address(f, place.address, &same, NULL) == 0 && same.file_offset == place.file_offset);
}

/* What can not be right ends in a text, and the text of what can is in the kernel's syntax. */
static void check_args(const ElfProbe *p) {
        Explanation e = EXPLANATION_NULL;
        _cleanup_free_ char *args = elf_probe_fetch_args(p, &e);

        MUST(args && (!*args || strncmp(args, "arg", 3) == 0));
        MUST(strspn(args, "abcdefghijklmnopqrstuvwxyz0123456789=%()+-:\\ ") == strlen(args));
}

static void probes(const ElfFile *f, size_t length) {
        Explanation e = EXPLANATION_NULL;
        ElfProbe *list = NULL;
        size_t n = 0;
        int r = elf_file_probes(f, NULL, NULL, &list, &n, &e);

        if (r != 0)
                check_refusal(r, &e);
        else
                MUST(n > 0);
        for (size_t i = 0; i < n; i++) {
                MUST(list[i].file_offset < length && list[i].semaphore_offset < length);
                check_args(&list[i]);
                list[i].machine = list[i].machine == 62 ? 183 : 62; /* the same text as another machine's */
                check_args(&list[i]);
        }
        elf_probes_free(list, n);
        (void)elf_file_probes(f, "no*", "such", &list, &n, &e);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length) {
        Explanation e = EXPLANATION_NULL;
        uint8_t id[BUILD_ID_SIZE_MAX];
        char **names = NULL;
        size_t n = 0;
        ElfFile *f;
        int r = elf_file_open_memory(bytes, length, "fuzzed", &f, &e);

        if (r != 0) {
                check_refusal(r, &e);
                return 0;
        }
        MUST(elf_file_build_id(f, id) <= sizeof(id));
        MUST(elf_file_match(f, "*", &names, &n) == 0);
        for (size_t i = 0; i < n; i++) {
                MUST(i == 0 || strcmp(names[i - 1], names[i]) < 0);
                if (i < 50)
                        find(f, names[i], i, length);
        }
        for (size_t i = 0; i < n; i++)
                free(names[i]);
        free(names);
        find(f, "probe_me", 0, length);
        find(f, "chosen", 0, length);
        find(f, "read_it@V1", 2, length);
        find(f, "read", 0, length);
        find(f, "", 0, length);
        probes(f, length);
        elf_file_close(f);
        return 0;
}
