/*
 * What daemon/kernel/elf/file.h answers, for a test that compares it with what binutils say: one command in each line
 * of standard input, one answer in each line of standard output, fields behind a tab.
 *
 *     find NAME [OFFSET]   address, file offset, size (hex), symbol
 *     address ADDRESS      address, file offset (hex)
 *     starts NAME OFFSET   "known" or "unknown": whether an instruction begins at this place
 *     starts-at ADDRESS    the same
 *     instruction HEX      the size of the instruction of x86-64 that the bytes begin with
 *     match GLOB           the names
 *     build-id             hex
 *     probes PROVIDER NAME for each site: provider, name, file offset, semaphore's (hex, behind it ! if it is
 *                          shadowed), arguments, fetch args, what is left out
 *
 * A refusal is "refused", its code, its reason and its text.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/cleanup.h"
#include "daemon/kernel/elf/file.h"
#include "daemon/kernel/elf/instruction.h"

static void print_refusal(int r, const Explanation *e) {
        if (r < 0)
                abort();
        printf("refused\t%d\t%s\t%s\n", r, e->reason ?: "-", e->text);
}

static void print_place(int r, const ElfPlace *p, const Explanation *e) {
        if (r != 0)
                print_refusal(r, e);
        else
                printf("%" PRIx64 "\t%" PRIx64 "\t%" PRIx64 "\t%s\n", p->address, p->file_offset, p->size, p->symbol);
}

static void print_start(const ElfFile *f, int r, const ElfPlace *p, Explanation *e) {
        bool is_known;

        if (r == 0)
                r = elf_file_check_instruction(f, p, &is_known, e);
        if (r != 0)
                print_refusal(r, e);
        else
                printf("%s\n", is_known ? "known" : "unknown");
}

static void print_instruction(const char *hex) {
        uint8_t bytes[32];
        size_t n = 0;
        unsigned byte;

        for (; n < sizeof(bytes) && sscanf(hex + 2 * n, "%2x", &byte) == 1; n++)
                bytes[n] = (uint8_t)byte;
        printf("%zu\n", x86_64_instruction_size(bytes, n));
}

static void print_names(const ElfFile *f, const char *glob) {
        Explanation e = EXPLANATION_NULL;
        char **names = NULL;
        size_t n = 0;
        bool is_cut;
        int r = elf_file_match(f, glob, &names, &n, &is_cut, &e);

        if (r != 0)
                return print_refusal(r, &e);
        for (size_t i = 0; i < n; i++) {
                printf("%s%s", i ? "\t" : "", names[i]);
                free(names[i]);
        }
        free(names);
        printf("\n");
}

static void print_probes(const ElfFile *f, const char *provider, const char *name) {
        Explanation e = EXPLANATION_NULL;
        ElfProbe *probes = NULL;
        size_t n = 0;
        int r = elf_file_probes(f, provider, name, &probes, &n, &e);

        if (r != 0)
                return print_refusal(r, &e);
        for (size_t i = 0; i < n; i++) {
                Explanation left = EXPLANATION_NULL;
                _cleanup_free_ char *args = elf_probe_fetch_args(&probes[i], &left);

                if (!args)
                        abort();
                printf("%s%s\t%s\t%" PRIx64 "\t%" PRIx64 "%s\t%s\t%s\t%s", i ? "\t" : "", probes[i].provider,
                       probes[i].name, probes[i].file_offset, probes[i].semaphore_offset,
                       probes[i].semaphore_is_shadowed ? "!" : "", probes[i].arguments, args, left.text);
        }
        elf_probes_free(probes, n);
        printf("\n");
}

static void answer(const ElfFile *f, char *line) {
        char *rest = line, *verb = strsep(&rest, " \n"), *first = strsep(&rest, " \n"), *second = strsep(&rest, " \n");
        Explanation e = EXPLANATION_NULL;
        ElfPlace place;
        int r;

        if (strcmp(verb, "find") == 0) {
                r = elf_file_find(f, first, second && *second ? strtoull(second, NULL, 0) : 0, &place, &e);
                print_place(r, &place, &e);
        } else if (strcmp(verb, "address") == 0) {
                r = elf_file_find_address(f, strtoull(first, NULL, 0), &place, &e);
                print_place(r, &place, &e);
        } else if (strcmp(verb, "starts") == 0) {
                r = elf_file_find(f, first, strtoull(second, NULL, 0), &place, &e);
                print_start(f, r, &place, &e);
        } else if (strcmp(verb, "starts-at") == 0) {
                r = elf_file_find_address(f, strtoull(first, NULL, 0), &place, &e);
                print_start(f, r, &place, &e);
        } else if (strcmp(verb, "instruction") == 0)
                print_instruction(first);
        else if (strcmp(verb, "match") == 0)
                print_names(f, first);
        else if (strcmp(verb, "build-id") == 0) {
                uint8_t id[BUILD_ID_SIZE_MAX];
                size_t n = elf_file_build_id(f, id);

                for (size_t i = 0; i < n; i++)
                        printf("%02x", id[i]);
                printf("\n");
        } else if (strcmp(verb, "probes") == 0)
                print_probes(f, first, second);
        else
                abort();
}

int main(int argc, char **argv) {
        Explanation e = EXPLANATION_NULL;
        ElfFile *f = NULL;
        char line[2048];
        int r;

        if (argc != 2) {
                fprintf(stderr, "usage: %s FILE\n", argv[0]);
                return 2;
        }
        r = elf_file_open(argv[1], &f, &e);
        if (r != 0) {
                print_refusal(r, &e);
                return EXIT_FAILURE;
        }
        while (fgets(line, sizeof(line), stdin))
                answer(f, line);
        elf_file_close(f);
        return EXIT_SUCCESS;
}
