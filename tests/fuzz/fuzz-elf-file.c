/*
 * A file as an ELF file: opened, all its functions listed and found, all its static probes with their arguments.
 * Whatever the file says, each place that comes out lies in it.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "daemon/base/cleanup.h"
#include "daemon/kernel/elf/file.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

#define MUST(x)                                                                                                        \
        do {                                                                                                           \
                if (!(x))                                                                                              \
                        abort();                                                                                       \
        } while (0)

static void check_refusal(int r, const Explanation *e) {
        MUST(r > 0 && r < _REFUSED_MAX && e->reason && e->text[0]);
}

/* Whatever the bytes are, only the middle of an instruction is refused, and never the place at which a symbol says that one begins. */
static void check_start(const ElfFile *f, const ElfPlace *place) {
        Explanation e = EXPLANATION_NULL;
        bool is_known;
        int r = elf_file_check_instruction(f, place, &is_known, &e);

        if (r != 0)
                check_refusal(r, &e);
        MUST(place->address != place->begin || !place->symbol[0] || (r == 0 && is_known));
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
        check_start(f, &place);
        check_start(f, &same);
}

/* What cannot be right ends in a text, and the text of what can is in the kernel's syntax. */
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

/* The same bytes, read from a file: nothing else may come of them. */
static void compare_with_file(const uint8_t *bytes, size_t length, const ElfFile *f, int opened, const Explanation *said) {
        _cleanup_close_ int fd = memfd_create("fuzzed", MFD_CLOEXEC);
        Explanation e = EXPLANATION_NULL, of_file = EXPLANATION_NULL;
        ElfFile *file = NULL;
        ElfPlace a, b;
        int r;

        MUST(fd >= 0 && write(fd, bytes, length) == (ssize_t)length);
        r = elf_file_open_fd(fd, "fuzzed", &file, &of_file);
        MUST(r == opened && strcmp(of_file.text, said->text) == 0);
        if (r != 0)
                return;
        r = elf_file_find(f, "probe_me", 0, &a, &e);
        MUST(elf_file_find(file, "probe_me", 0, &b, &of_file) == r && strcmp(e.text, of_file.text) == 0);
        MUST(r != 0 || (a.file_offset == b.file_offset && strcmp(a.symbol, b.symbol) == 0));
        elf_file_close(file);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length) {
        Explanation e = EXPLANATION_NULL;
        uint8_t id[BUILD_ID_SIZE_MAX];
        char **names = NULL;
        bool is_cut;
        size_t n = 0;
        ElfFile *f = NULL;
        int r = elf_file_open_memory(bytes, length, "fuzzed", &f, &e);

        if (length > 0) /* an empty file is refused by its size */
                compare_with_file(bytes, length, f, r, &e);
        if (r != 0) {
                check_refusal(r, &e);
                return 0;
        }
        MUST(elf_file_build_id(f, id) <= sizeof(id));
        r = elf_file_match(f, "*", &names, &n, &is_cut, &e);
        if (r != 0) /* a symbol has its name nowhere: what looks for one says so too */
                check_refusal(r, &e);
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
