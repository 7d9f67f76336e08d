/*
 * Static probes (USDT): what <sys/sdt.h> leaves in .note.stapsdt. A note holds three addresses, of the nop, of
 * .stapsdt.base as it was when the file was linked, and of the semaphore, and then three texts. prelink(8) moves
 * addresses but not those in notes; the section .stapsdt.base did move, so the difference tells by how much.
 */
#include "daemon/base/glob.h"
#include "daemon/kernel/elf/layout.h"

#include "config/text/words.h"
#include "daemon/base/checkpoint.h"
#include "daemon/base/cleanup.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NOTE_OWNER "stapsdt"
#define NOTE_TYPE 3
#define NEAR_MAX 10000
#define NOTE_SIZE_MAX 65536            /* of one site */
#define SITES_SIZE_MAX (4 << 20)       /* of what is kept of those that match, for each some 100 bytes and its texts */

/* A note as it lies in the file; texts are terminated. */
typedef struct Site {
        uint64_t address, base, semaphore;
        const char *provider, *name, *arguments;
} Site;

typedef struct Sites {
        ElfProbe *items;
        size_t n, n_room;
        size_t n_bytes; /* of them and their texts */
} Sites;

typedef struct Walk {
        const ElfFile *file;
        const char *provider, *name; /* globs, NULL: all */
        Pattern *provider_glob, *name_glob; /* of them */
        uint64_t base;               /* where .stapsdt.base is now, 0 unknown */
        ElfRange section_names;
        uint64_t n_walked;           /* bytes of notes */
        uint8_t *bytes;              /* of the note that was read last */
        Sites found;
        Nearest nearest;
        char nearest_name[96];
        size_t n_seen;
} Walk;

static int section_is(const Walk *w, size_t index, const char *name, Elf64_Shdr *ret, bool *ret_is, Explanation *e) {
        int r = elf_file_section_header(w->file, index, ret, e);

        *ret_is = false;
        return r == 0 ? elf_file_text_begins(w->file, &w->section_names, ret->sh_name, name, strlen(name) + 1, ret_is, e) : r;
}

static int load_names(Walk *w, Explanation *e) {
        Elf64_Shdr header;
        int r;

        if (w->file->header.e_shstrndx == SHN_UNDEF)
                return 0;
        r = elf_file_section(w->file, w->file->header.e_shstrndx, &header, e);
        if (r == 0)
                w->section_names = (ElfRange){ header.sh_offset, header.sh_size };
        return r;
}

static int find_base(Walk *w, Explanation *e) {
        for (size_t i = 1; i < w->file->header.e_shnum; i++) {
                Elf64_Shdr header;
                bool is_base;
                int r = section_is(w, i, ".stapsdt.base", &header, &is_base, e);

                if (r != 0)
                        return r;
                if (is_base) {
                        w->base = header.sh_addr;
                        return 0;
                }
        }
        return 0;
}

static bool parse_site(const uint8_t *bytes, size_t size, size_t n_word, Site *ret) {
        size_t at = 3 * n_word;
        uint64_t words[3] = { 0 };
        const char *texts[3];

        if (size < at)
                return false;
        for (size_t i = 0; i < ARRAY_SIZE(words); i++)
                if (n_word == 8)
                        memcpy(&words[i], bytes + i * n_word, n_word);
                else {
                        uint32_t narrow;

                        memcpy(&narrow, bytes + i * n_word, n_word);
                        words[i] = narrow;
                }
        for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
                const uint8_t *end = memchr(bytes + at, '\0', size - at);

                if (!end)
                        return false;
                texts[i] = (const char *)bytes + at;
                at = (size_t)(end - bytes) + 1;
        }
        *ret = (Site){ .address = words[0], .base = words[1], .semaphore = words[2], .provider = texts[0],
                       .name = texts[1], .arguments = texts[2] };
        return true;
}

static bool glob_fits(const Pattern *glob, const char *text) {
        return !glob || glob_match(glob, text);
}

/* "provider:name" of a site that does not match, if it is nearer to what was asked for than those before. */
static void compare_names(Walk *w, const Site *s) {
        char wanted[96], name[96];
        Nearest nearest = w->nearest;
        int n = snprintf(wanted, sizeof(wanted), "%s:%s", w->provider ?: s->provider, w->name ?: s->name);
        int k = snprintf(name, sizeof(name), "%s:%s", s->provider, s->name);

        if (n < 0 || n >= (int)sizeof(wanted) || k < 0 || k >= (int)sizeof(name) || w->n_seen++ >= NEAR_MAX)
                return;
        for (int i = 0; i < k; i++)
                if ((unsigned char)name[i] <= ' ' || (unsigned char)name[i] > '~')
                        return;
        nearest_add(&nearest, wanted, name);
        if (nearest.word == name) {
                memcpy(w->nearest_name, name, sizeof(name));
                w->nearest = (Nearest){ .word = w->nearest_name, .distance = nearest.distance };
        }
}

/* As the kernel's valid_ref_ctr_vma() looks for it: by the page of the file, in the first writable mapping. */
static bool is_shadowed(const ElfFile *f, const ElfSegment *counter, uint64_t offset) {
        uint64_t page_size = (uint64_t)sysconf(_SC_PAGESIZE), page = offset / page_size;

        for (size_t i = 0; i < f->n_segments; i++) {
                const ElfSegment *s = &f->segments[i];

                if (s->is_writable && s->address < counter->address && s->offset / page_size <= page &&
                    (s->offset + s->size - 1) / page_size >= page)
                        return true;
        }
        return false;
}

static int add_site(Walk *w, const Site *s, Explanation *e) {
        uint64_t moved = w->base && s->base ? w->base - s->base : 0;
        uint64_t address = s->address + moved, semaphore = s->semaphore ? s->semaphore + moved : 0;
        const ElfSegment *code = elf_file_segment(w->file, address);
        const ElfSegment *counter = semaphore ? elf_file_segment(w->file, semaphore) : NULL;
        ElfProbe p = { .machine = w->file->header.e_machine };

        if (!code || !code->is_executable)
                return elf_file_refuse(w->file, e, "the note of %s:%s has its nop at 0x%" PRIx64 ", where there is no code",
                                       QUOTE(s->provider), QUOTE(s->name), address);
        if (semaphore && !counter)
                return elf_file_refuse(w->file, e, "the note of %s:%s has its semaphore at 0x%" PRIx64
                                       ", where the file has no data", QUOTE(s->provider), QUOTE(s->name), semaphore);
        w->found.n_bytes += sizeof(p) + 100 + strlen(s->provider) + strlen(s->name) + strlen(s->arguments);
        if (w->found.n_bytes > SITES_SIZE_MAX)
                return elf_file_refuse(w->file, e, "more sites of static probes, or longer ones, match than any program has:"
                                       " %zu of them, to %s:%s, have too many bytes", w->found.n + 1, QUOTE(s->provider),
                                       QUOTE(s->name));
        if (w->found.n == w->found.n_room) {
                size_t n_room = w->found.n_room ? w->found.n_room * 2 : 8;
                ElfProbe *more = reallocarray(w->found.items, n_room, sizeof(*more));

                if (!more)
                        return error_origin(-ENOMEM);
                w->found.items = more;
                w->found.n_room = n_room;
        }
        p.file_offset = address - code->address + code->offset;
        p.semaphore_offset = counter ? semaphore - counter->address + counter->offset : 0;
        p.semaphore_is_shadowed = counter && is_shadowed(w->file, counter, p.semaphore_offset);
        p.provider = strdup(s->provider);
        p.name = strdup(s->name);
        p.arguments = strdup(s->arguments);
        w->found.items[w->found.n++] = p;
        return p.provider && p.name && p.arguments ? 0 : error_origin(-ENOMEM);
}

static int take_note(Walk *w, const ElfNote *note, uint64_t end, size_t section, Explanation *e) {
        const ElfFile *f = w->file;
        Site s;
        int r = 0;

        if (note->size <= NOTE_SIZE_MAX)
                r = elf_file_read(f, ELF_VIEW_ENTRIES, note->bytes, w->bytes, note->size, e);
        if (r != 0)
                return r;
        if (note->size > NOTE_SIZE_MAX || !parse_site(w->bytes, note->size, f->is_64 ? 8 : 4, &s))
                return elf_file_refuse(f, e, "the note before byte %" PRIu64 " of section %zu is not a static probe", end, section);
        if (glob_fits(w->provider_glob, s.provider) && glob_fits(w->name_glob, s.name))
                return add_site(w, &s, e);
        compare_names(w, &s);
        return 0;
}

static int walk_notes(Walk *w, const Elf64_Shdr *header, size_t section, Explanation *e) {
        ElfRange notes = { header->sh_offset, header->sh_size };
        const ElfFile *f = w->file;
        uint64_t at = 0;

        w->n_walked += notes.size;
        if (w->n_walked > ELF_TABLE_SIZE_MAX)
                return elf_file_refuse(f, e, "its notes of static probes, to section %zu, are larger than in any real program",
                                       section);
        for (;;) {
                bool is_note, is_site = false;
                ElfNote note;
                int r = elf_note_next(f, &notes, header->sh_addralign, &at, &note, &is_note, e);

                if (r == 0 && !is_note)
                        break;
                if (r == 0)
                        r = elf_note_is(f, &note, NOTE_OWNER, NOTE_TYPE, &is_site, e);
                if (r == 0 && is_site)
                        r = take_note(w, &note, at, section, e);
                if (r != 0)
                        return r;
        }
        if (at != notes.size)
                return elf_file_refuse(f, e, "the note at byte %" PRIu64 " of section %zu ends after the section", at, section);
        return 0;
}

static int walk(Walk *w, Explanation *e) {
        const ElfFile *f = w->file;
        int r = load_names(w, e);

        if (r == 0)
                r = find_base(w, e);
        for (size_t i = 1; i < f->header.e_shnum && r == 0; i++) {
                Elf64_Shdr header;
                bool is_notes;

                r = section_is(w, i, ".note.stapsdt", &header, &is_notes, e);
                if (r != 0 || !is_notes)
                        continue;
                if (header.sh_type != SHT_NOTE)
                        return elf_file_refuse(f, e, "section %zu, .note.stapsdt, contains no notes", i);
                r = elf_file_section(f, i, &header, e);
                if (r == 0)
                        r = walk_notes(w, &header, i, e);
        }
        return r;
}

int elf_file_probes(const ElfFile *f, const char *provider, const char *name, ElfProbe **ret, size_t *ret_n,
                    Explanation *e) {
        Walk w = { .file = f, .provider = provider, .name = name, .nearest = NEAREST_NULL };
        int r = provider ? glob_compile(provider, &w.provider_glob, e) : 0;

        if (r == 0 && name)
                r = glob_compile(name, &w.name_glob, e);
        w.bytes = r == 0 ? malloc(NOTE_SIZE_MAX) : NULL;
        if (r == 0)
                r = w.bytes ? walk(&w, e) : error_origin(-ENOMEM);
        free(w.bytes);
        pattern_free(w.provider_glob);
        pattern_free(w.name_glob);
        if (r == 0 && w.found.n == 0)
                r = w.n_seen == 0 ? refuse(e, REFUSED_NOT_FOUND, "unknown-probe",
                                           "%s has no static probes (.note.stapsdt)", QUOTE(f->path))
                                  : refuse(e, REFUSED_NOT_FOUND, "unknown-probe", "%s has no static probe %s:%s%s",
                                           QUOTE(f->path), provider ? QUOTE(provider) : "*", name ? QUOTE(name) : "*",
                                           HINT(&w.nearest));
        if (r != 0) {
                elf_probes_free(w.found.items, w.found.n);
                return r;
        }
        *ret = w.found.items;
        *ret_n = w.found.n;
        return 0;
}

void elf_probes_free(ElfProbe *probes, size_t n) {
        for (size_t i = 0; i < n; i++) {
                free(probes[i].provider);
                free(probes[i].name);
                free(probes[i].arguments);
        }
        free(probes);
}
