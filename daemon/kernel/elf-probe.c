/*
 * Static probes (USDT): what <sys/sdt.h> leaves in .note.stapsdt. A note holds three addresses, of the nop, of
 * .stapsdt.base as it was when the file was linked, and of the semaphore, and then three texts. prelink(8) moves
 * addresses but not those in notes; the section .stapsdt.base did move, so the difference tells by how much.
 */
#include "daemon/kernel/elf-layout.h"

#include "config/words.h"
#include "daemon/base/checkpoint.h"
#include "daemon/base/cleanup.h"

#include <fnmatch.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NOTE_OWNER "stapsdt"
#define NOTE_TYPE 3
#define NEAR_MAX 10000

/* A note as it lies in the file; texts are terminated. */
typedef struct Site {
        uint64_t address, base, semaphore;
        const char *provider, *name, *arguments;
} Site;

typedef struct Sites {
        ElfProbe *items;
        size_t n, n_room;
} Sites;

typedef struct Walk {
        const ElfFile *file;
        const char *provider, *name; /* globs, NULL: all */
        uint64_t base;               /* where .stapsdt.base is now, 0 unknown */
        Sites found;
        Nearest nearest;
        char nearest_name[96];
        size_t n_seen;
} Walk;

static bool section_is(const ElfFile *f, size_t index, const char *name, GElf_Shdr *ret) {
        Elf_Scn *section = elf_getscn(f->elf, index);
        const char *found;

        if (!section || !gelf_getshdr(section, ret))
                return false;
        found = elf_strptr(f->elf, f->header.e_shstrndx, ret->sh_name);
        return found && strcmp(found, name) == 0;
}

static int load_names(const ElfFile *f, Explanation *e) {
        GElf_Shdr header;
        Elf_Data *names;

        if (f->header.e_shstrndx == SHN_UNDEF)
                return 0;
        return elf_file_load_section(f, f->header.e_shstrndx, &names, &header, e);
}

static uint64_t find_base(const ElfFile *f) {
        GElf_Shdr header;

        for (size_t i = 1; i < f->header.e_shnum; i++)
                if (section_is(f, i, ".stapsdt.base", &header))
                        return header.sh_addr;
        return 0;
}

static bool read_site(const ElfFile *f, const ElfNote *note, Site *ret) {
        size_t n_word = f->header.e_ident[EI_CLASS] == ELFCLASS64 ? 8 : 4, at = 3 * n_word;
        uint64_t words[3] = { 0 };
        const char *texts[3];

        if (note->size < at)
                return false;
        for (size_t i = 0; i < ARRAY_SIZE(words); i++)
                if (n_word == 8)
                        memcpy(&words[i], note->bytes + i * n_word, n_word);
                else {
                        uint32_t narrow;

                        memcpy(&narrow, note->bytes + i * n_word, n_word);
                        words[i] = narrow;
                }
        for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
                const uint8_t *end = memchr(note->bytes + at, '\0', note->size - at);

                if (!end)
                        return false;
                texts[i] = (const char *)note->bytes + at;
                at = (size_t)(end - note->bytes) + 1;
        }
        *ret = (Site){ .address = words[0], .base = words[1], .semaphore = words[2], .provider = texts[0],
                       .name = texts[1], .arguments = texts[2] };
        return true;
}

static bool glob_fits(const char *glob, const char *text) {
        return !glob || fnmatch(glob, text, 0) == 0;
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
                return elf_file_refuse(w->file, e, "the note of %s:%s has its nop at 0x%" PRIx64 ", where is no code",
                                       QUOTE(s->provider), QUOTE(s->name), address);
        if (semaphore && !counter)
                return elf_file_refuse(w->file, e, "the note of %s:%s has its semaphore at 0x%" PRIx64
                                       ", where the file holds nothing", QUOTE(s->provider), QUOTE(s->name), semaphore);
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

static int walk_notes(Walk *w, Elf_Data *notes, size_t section, Explanation *e) {
        size_t offset = 0;
        ElfNote note;
        int r;

        while (elf_note_next(notes, &offset, &note)) {
                Site s;

                r = checkpoint(e);
                if (r != 0)
                        return r;

                if (!elf_note_is(&note, NOTE_OWNER, NOTE_TYPE))
                        continue;
                if (!read_site(w->file, &note, &s))
                        return elf_file_refuse(w->file, e, "the note before byte %zu of section %zu is no static probe",
                                               offset, section);
                if (!glob_fits(w->provider, s.provider) || !glob_fits(w->name, s.name)) {
                        compare_names(w, &s);
                        continue;
                }
                r = add_site(w, &s, e);
                if (r != 0)
                        return r;
        }
        if (offset != notes->d_size)
                return elf_file_refuse(w->file, e, "the note at byte %zu of section %zu ends behind the section",
                                       offset, section);
        return 0;
}

static int walk(Walk *w, Explanation *e) {
        const ElfFile *f = w->file;
        int r = load_names(f, e);

        if (r != 0)
                return r;
        w->base = find_base(f);
        for (size_t i = 1; i < f->header.e_shnum && r == 0; i++) {
                Elf_Data *notes = NULL;
                GElf_Shdr header;

                if (!section_is(f, i, ".note.stapsdt", &header))
                        continue;
                if (header.sh_type != SHT_NOTE)
                        return elf_file_refuse(f, e, "section %zu, .note.stapsdt, holds no notes", i);
                r = elf_file_load_section(f, i, &notes, &header, e);
                if (r == 0 && notes)
                        r = walk_notes(w, notes, i, e);
        }
        return r;
}

int elf_file_probes(const ElfFile *f, const char *provider, const char *name, ElfProbe **ret, size_t *ret_n,
                    Explanation *e) {
        Walk w = { .file = f, .provider = provider, .name = name, .nearest = NEAREST_NULL };
        int r = walk(&w, e);

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
