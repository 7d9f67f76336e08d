/*
 * This very program as an ELF file: its own functions are where they run, and each way in which it could lie is
 * refused. Arguments of static probes for both machines. What linkers make: tests/integration/test_elf.py.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <elf.h>
#include <link.h>
#include <sys/stat.h>

#include "daemon/base/cleanup.h"
#include "daemon/kernel/elf/file.h"
#include "daemon/kernel/host/whole-file.h"


DEFINE_CLEANUP(ElfFile *, elf_file_close)

typedef ElfW(Ehdr) Header;
typedef ElfW(Phdr) Segment;
typedef ElfW(Shdr) Section;
typedef ElfW(Sym) Symbol;

static char *own;
static size_t n_own;

static int load_own(void **state) {
        return whole_file_read("/proc/self/exe", &own, &n_own);
}

static int free_own(void **state) {
        free(own);
        return 0;
}

static int first_base(struct dl_phdr_info *info, size_t size, void *userdata) {
        *(uintptr_t *)userdata = info->dlpi_addr;
        return 1;
}

static void test_own_functions(void **state) {
        static const struct {
                const char *name;
                const void *address;
        } functions[] = {
                { "elf_file_open", elf_file_open },
                { "elf_probe_fetch_args", elf_probe_fetch_args },
                { "test_own_functions", test_own_functions },
        };
        _cleanup_(elf_file_closep) ElfFile *f = NULL, *same = NULL;
        Explanation e = EXPLANATION_NULL;
        struct stat status;
        uintptr_t base = 0;
        dev_t device;
        ino_t inode;

        (void)dl_iterate_phdr(first_base, &base);
        assert_int_equal(elf_file_open("/proc/self/exe", &f, &e), 0);
        assert_int_equal(elf_file_open_memory(own, n_own, "own", &same, &e), 0);
        for (size_t i = 0; i < ARRAY_SIZE(functions); i++) {
                ElfPlace place, again;

                assert_int_equal(elf_file_find(f, functions[i].name, 0, &place, &e), 0);
                assert_true(base + place.address == (uintptr_t)functions[i].address);
                assert_memory_equal(own + place.file_offset, functions[i].address, 16);
                assert_string_equal(place.symbol, functions[i].name);
                assert_true(place.size > 16);
                assert_int_equal(elf_file_find(same, functions[i].name, 5, &again, &e), 0);
                assert_int_equal(again.file_offset, place.file_offset + 5);
                assert_int_equal(elf_file_find_address(same, place.address, &again, &e), 0);
                assert_int_equal(again.file_offset, place.file_offset);
                assert_string_equal(again.symbol, "");
        }
        assert_int_equal(stat("/proc/self/exe", &status), 0);
        elf_file_inode(f, &device, &inode);
        assert_true(device == status.st_dev && inode == status.st_ino);
}

/* Of bytes that cannot be right; `words` stand in what is said about it. */
static void check_said(const Explanation *e, const char *words) {
        assert_string_equal(e->reason, "bad-elf");
        if (!strstr(e->text, words) || strncmp(e->text, "'made': ", 8) != 0)
                fail_msg("no \"%s\" in \"%s\"", words, e->text);
}

static void check_refused(const void *bytes, size_t size, const char *words) {
        Explanation e = EXPLANATION_NULL;
        ElfFile *f = NULL;

        assert_int_equal(elf_file_open_memory(bytes, size, "made", &f, &e), REFUSED_INVALID);
        check_said(&e, words);
        assert_null(f);
}

/* What no header says is found when a function is looked for. */
static void check_refused_later(const void *bytes, size_t size, const char *words) {
        _cleanup_(elf_file_closep) ElfFile *f = NULL;
        Explanation e = EXPLANATION_NULL;
        ElfPlace place;

        assert_int_equal(elf_file_open_memory(bytes, size, "made", &f, &e), 0);
        assert_int_equal(elf_file_find(f, "elf_file_open", 0, &place, &e), REFUSED_INVALID);
        check_said(&e, words);
}

static void test_cut_off(void **state) {
        for (size_t size = 0; size < n_own; size += 1 + size / 50) {
                char *bytes = malloc(size ?: 1); /* so that a sanitizer sees one byte too many */

                memcpy(bytes, own, size);
                check_refused(bytes, size, size < EI_NIDENT ? "not an ELF file" : "truncated");
                free(bytes);
        }
}

/* A copy, its parts, and the first section of a type. */
typedef struct Copy {
        char *bytes;
        Header *header;
        Segment *segments;
        Section *sections;
} Copy;

static Copy copy_own(void) {
        Copy c = { .bytes = malloc(n_own) };

        assert_non_null(c.bytes);
        memcpy(c.bytes, own, n_own);
        c.header = (Header *)c.bytes;
        c.segments = (Segment *)(c.bytes + c.header->e_phoff);
        c.sections = (Section *)(c.bytes + c.header->e_shoff);
        return c;
}

static Section *section_of(const Copy *c, unsigned type) {
        for (size_t i = 0; i < c->header->e_shnum; i++)
                if (c->sections[i].sh_type == type)
                        return &c->sections[i];
        fail();
        return NULL;
}

static Segment *load_of(const Copy *c, size_t n) {
        for (size_t i = 0; i < c->header->e_phnum; i++)
                if (c->segments[i].p_type == PT_LOAD && n-- == 0)
                        return &c->segments[i];
        fail();
        return NULL;
}

/* Each changes one thing. */
static void no_magic(Copy *c) { c->bytes[1] = 'X'; }
static void other_order(Copy *c) { c->bytes[EI_DATA] ^= 3; }
static void other_class(Copy *c) { c->bytes[EI_CLASS] = 7; }
static void object(Copy *c) { c->header->e_type = ET_REL; }
static void no_segments(Copy *c) { c->header->e_phnum = 0; }
static void many_segments(Copy *c) { c->header->e_phnum = 60000; }
static void odd_segments(Copy *c) { c->header->e_phentsize = 17; }
static void odd_sections(Copy *c) { c->header->e_shentsize = 17; }
static void far_segments(Copy *c) { c->header->e_phoff = (ElfW(Off))-8; }
static void far_sections(Copy *c) { c->header->e_shoff = n_own - 64; }
static void uncounted_sections(Copy *c) { c->header->e_shnum = 0; }
static void large_segment(Copy *c) { load_of(c, 1)->p_filesz = load_of(c, 1)->p_memsz = n_own; }
static void fuller_segment(Copy *c) { load_of(c, 1)->p_memsz = load_of(c, 1)->p_filesz - 1; }
static void wrapped_segment(Copy *c) { load_of(c, 1)->p_vaddr = (ElfW(Addr))-16; }
static void same_segment(Copy *c) { load_of(c, 1)->p_vaddr = load_of(c, 0)->p_vaddr; }
static void large_symbols(Copy *c) { section_of(c, SHT_SYMTAB)->sh_size = n_own / sizeof(Symbol) * sizeof(Symbol); }
static void huge_symbols(Copy *c) { section_of(c, SHT_SYMTAB)->sh_size = (ElfW(Xword))-sizeof(Symbol); }
static void odd_symbols(Copy *c) { section_of(c, SHT_SYMTAB)->sh_entsize = 1; }
static void absent_symbols(Copy *c) { section_of(c, SHT_SYMTAB)->sh_flags |= SHF_COMPRESSED; }
static void linked_nowhere(Copy *c) { section_of(c, SHT_SYMTAB)->sh_link = 60000; }
static void linked_elsewhere(Copy *c) { section_of(c, SHT_SYMTAB)->sh_link = section_of(c, SHT_DYNAMIC) - c->sections; }
static void few_versions(Copy *c) { section_of(c, SHT_GNU_versym)->sh_size -= 2; }

static void open_strings(Copy *c) {
        Section *strings = &c->sections[section_of(c, SHT_SYMTAB)->sh_link];

        c->bytes[strings->sh_offset + strings->sh_size - 1] = 'x';
}

static void far_name(Copy *c) {
        Section *symbols = section_of(c, SHT_SYMTAB);

        ((Symbol *)(c->bytes + symbols->sh_offset))[3].st_name = (Elf32_Word)c->sections[symbols->sh_link].sh_size;
}

static void test_lies(void **state) {
        static const struct {
                void (*change)(Copy *c);
                const char *words;
        } rows[] = {
                { no_magic, "is not an ELF file" },
                { other_order, "another byte order" },
                { other_class, "word size" },
                { object, "neither a program nor a shared library (ELF type 1)" },
                { no_segments, "has 0 program headers" },
                { many_segments, "has 60000 program headers" },
                { odd_segments, "headers of a size" },
                { odd_sections, "headers of a size" },
                { far_segments, "its program headers of" },
                { far_sections, "its section headers of" },
                { uncounted_sections, "no number of them" },
                { large_segment, "would end after the file's" },
                { fuller_segment, "impossible sizes" },
                { wrapped_segment, "impossible sizes" },
                { same_segment, "overlap" },
                { large_symbols, "would end after the file's" },
                { huge_symbols, "would end after the file's" },
                { odd_symbols, "not of 1 bytes each" },
                { absent_symbols, "no uncompressed bytes" },
                { linked_nowhere, "refers to a section 60000" },
                { linked_elsewhere, "should hold names" },
                { open_strings, "should hold names" },
                { few_versions, "one version for each of" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                Copy c = copy_own();

                rows[i].change(&c);
                check_refused(c.bytes, n_own, rows[i].words);
                free(c.bytes);
        }
}

static void test_lies_of_symbols(void **state) {
        Copy c = copy_own();

        far_name(&c);
        check_refused_later(c.bytes, n_own, "symbol 3 of section");
        free(c.bytes);
}

static void test_no_file(void **state) {
        static const struct {
                const char *path;
                int refusal;
                const char *reason;
        } rows[] = {
                { "/no/such/file", REFUSED_NOT_FOUND, "no-file" },
                { "/proc/self/exe/more", REFUSED_NOT_FOUND, "no-file" },
                { "/", REFUSED_INVALID, "bad-elf" },
                { "/dev/null", REFUSED_INVALID, "bad-elf" },
                { "/proc/self/stat", REFUSED_INVALID, "bad-elf" },
                { "/etc/passwd", REFUSED_INVALID, "bad-elf" },
        };
        char folder[] = "/tmp/perfd-elf-XXXXXX", fifo[64];
        Explanation e = EXPLANATION_NULL;
        ElfFile *f = NULL;

        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                assert_int_equal(elf_file_open(rows[i].path, &f, &e), rows[i].refusal);
                assert_string_equal(e.reason, rows[i].reason);
        }
        assert_non_null(mkdtemp(folder));
        (void)snprintf(fifo, sizeof(fifo), "%s/fifo", folder);
        assert_int_equal(mkfifo(fifo, 0600), 0);
        assert_int_equal(elf_file_open(fifo, &f, &e), REFUSED_INVALID); /* and does not wait for a writer */
        assert_int_equal(unlink(fifo), 0);
        assert_int_equal(rmdir(folder), 0);
        assert_null(f);
}

static void test_fetch_args(void **state) {
        static const struct {
                uint16_t machine;
                const char *arguments, *expected, *left; /* NULL: nothing */
        } rows[] = {
                { EM_X86_64, "", "", NULL },
                { EM_X86_64, "8@%rdi -4@8(%rsp)", "arg1=%di:u64 arg2=+8(%sp):s32", NULL },
                { EM_X86_64, "1@%al -2@%r9w 4@%r15d -8@%rbp",
                  "arg1=%ax:u8 arg2=%r9:s16 arg3=%r15:u32 arg4=%bp:s64", NULL },
                { EM_X86_64, "-4@(%rax) 8@-0x10(%rbp) 4@$7 -4@$-1",
                  "arg1=+0(%ax):s32 arg2=-16(%bp):u64 arg3=\\7:u32 arg4=\\-1:s32", NULL },
                { EM_X86_64, " %rdx  $5 ", "arg1=%dx:u64 arg2=\\5:u64", NULL },
                { EM_X86_64, "8@(%rax,%rbx,8) 4@%eax", "arg2=%ax:u32", "arg1 ('8@(%rax,%rbx,8)')" },
                { EM_X86_64, "8@%xmm0 4@count(%rip) 1@%ah 3@%eax 4@4(%eax)", "",
                  "arg1 ('8@%xmm0'), arg2 ('4@count(%rip)'), arg3 ('1@%ah'), arg4 ('3@%eax'), arg5 ('4@4(%eax)')" },
                { EM_X86_64, "4@8+4(%rsp) 4@%fs:8 8f@%rax 4@$ 4@% 4@() 4@(% 4@", "", "arg7 ('4@(% 4@')" },
                { EM_X86_64, "8@x0", "", "arg1 ('8@x0')" },
                { EM_386, "4@%eax -4@4(%esp) 4@4(%rsp)", "arg1=%ax:u32 arg2=+4(%sp):s32", "arg3 ('4@4(%rsp)')" },
                { EM_AARCH64, "-4@w0 8@x30 8@sp", "arg1=%x0:s32 arg2=%x30:u64 arg3=%sp:u64", NULL },
                { EM_AARCH64, "8@[sp, 16] -4@[x21, #-8] 1@[x1]",
                  "arg1=+16(%sp):u64 arg2=-8(%x21):s32 arg3=+0(%x1):u8", NULL },
                { EM_AARCH64, "-4@5 -4@-5 8@xzr 4@#7", "arg1=\\5:s32 arg2=\\-5:s32 arg3=\\0:u64 arg4=\\7:u32", NULL },
                { EM_AARCH64, "8@x31 8@d0 8@[w1] 8@[x1, x2] 8@[x1 8@x01 4@x5", "",
                  "arg1 ('8@x31'), arg2 ('8@d0'), arg3 ('8@[w1]'), arg4 ('8@[x1, x2]'), arg5 ('8@[x1 8@x01 4@x5')" },
                { EM_AARCH64, "8@%rax", "", "arg1 ('8@%rax')" },
                { EM_RISCV, "8@a0", "", "arg1 ('8@a0')" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                ElfProbe p = { .provider = (char *)"p", .name = (char *)"n", .arguments = (char *)rows[i].arguments,
                               .machine = rows[i].machine };
                Explanation e = EXPLANATION_NULL;
                _cleanup_free_ char *args = elf_probe_fetch_args(&p, &e);

                assert_string_equal(args, rows[i].expected);
                if (rows[i].left && !strstr(e.text, rows[i].left))
                        fail_msg("no \"%s\" in \"%s\"", rows[i].left, e.text);
                if (rows[i].left)
                        assert_string_equal(e.reason, "unfetchable");
                else
                        assert_true(!e.reason && !e.text[0]);
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_own_functions),
                cmocka_unit_test(test_cut_off),
                cmocka_unit_test(test_lies),
                cmocka_unit_test(test_lies_of_symbols),
                cmocka_unit_test(test_no_file),
                cmocka_unit_test(test_fetch_args),
        };

        return cmocka_run_group_tests(tests, load_own, free_own);
}
