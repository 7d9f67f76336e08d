/* Call frame information is copied out of its file, which is closed then: it may be replaced, or cut off, while it is in use. */
#include <errno.h>
#include <gelf.h>
#include <stdlib.h>
#include <unistd.h>

#include "client/symbols/symbolizer.h"

#define SHARE_OF_MEMORY 4 /* memory_max has that many of it */

static void take_out(Unwinder *u, CallFrames *f) {
        *(f->newer ? &f->newer->older : &u->newest) = f->older;
        *(f->older ? &f->older->newer : &u->oldest) = f->newer;
        f->newer = f->older = NULL;
}

static void put_in(Unwinder *u, CallFrames *f) {
        f->older = u->newest;
        *(u->newest ? &u->newest->newer : &u->oldest) = f;
        u->newest = f;
}

void call_frames_free(perfd_symbolizer *s, CallFrames *f) {
        if (!f)
                return;
        if (f->serial > 0) {
                take_out(&s->unwinder, f);
                s->unwinder.bytes -= f->bytes;
                symbolizer_count_table(s, f->bytes, 0);
                f->dso->frames = NULL;
                f->dso->has_frames_tried = false;
        }
        for (size_t i = 0; i < 2; i++)
                frame_section_deinit(f->sections + i);
        free(f);
}

/* Sections of debug information may be compressed: what comes out is as bounded as what goes in. */
static Elf_Data *plain_bytes(const ElfFile *file, Elf_Scn *section) {
        GElf_Shdr header;
        GElf_Chdr compressed;

        if (!section || !gelf_getshdr(section, &header))
                return NULL;
        if ((header.sh_flags & SHF_COMPRESSED) != 0 && (header.sh_size > file->limit || !gelf_getchdr(section, &compressed) ||
                                                         compressed.ch_size > file->limit || elf_compress(section, 0, 0) < 0))
                return NULL;
        return elf_file_section_bytes(file, section);
}

static int read_section(const ElfFile *file, const char *name, bool is_debug, FrameSection *to) {
        Elf_Scn *section = elf_file_section(file, name, SHT_NULL);
        Elf_Data *bytes = plain_bytes(file, section);
        GElf_Shdr header;
        uint8_t *copy;

        if (!bytes || !gelf_getshdr(section, &header))
                return 0;
        copy = malloc(bytes->d_size);
        if (!copy)
                return -ENOMEM;
        memcpy(copy, bytes->d_buf, bytes->d_size);
        return frame_section_init(to, copy, bytes->d_size, header.sh_addr, is_debug);
}

/* Words of 64 bits, in the byte order of this machine, as registers and stacks are that are unwound. */
static bool is_of_this_kind(const ElfFile *f) {
        const char *ident = elf_getident(f->elf, NULL);
        const uint16_t one = 1;
        const int order = *(const uint8_t *)&one == 1 ? ELFDATA2LSB : ELFDATA2MSB;

        return ident && ident[EI_CLASS] == ELFCLASS64 && ident[EI_DATA] == order;
}

/* Of what was taken out of it, where it has no .debug_frame itself. */
static int read_apart(const perfd_symbolizer *s, const Dso *dso, const ElfFile *file, CallFrames *f) {
        ElfFile apart = ELF_FILE_NULL;
        int fd = -1, r = 0;

        if (f->sections[1].n == 0 && dso_open_apart(s, dso, file, &fd, &apart) && is_of_this_kind(&apart))
                r = read_section(&apart, ".debug_frame", true, &f->sections[1]);
        elf_file_close(&apart);
        if (fd >= 0)
                close(fd);
        return r;
}

static int read_frames(perfd_symbolizer *s, Dso *dso, CallFrames *f) {
        ElfFile file = ELF_FILE_NULL;
        int fd = -1, r = 0;

        if (!dso_open(s, dso, &fd, &file))
                return 0;
        if (is_of_this_kind(&file)) {
                file.limit = s->memory_max / SHARE_OF_MEMORY;
                elf_symbols_read_segments(&f->place, &file);
                r = read_section(&file, ".eh_frame", false, &f->sections[0]);
                if (r == 0)
                        r = read_section(&file, ".debug_frame", true, &f->sections[1]);
                if (r == 0 && dso->kind == DSO_FILE)
                        r = read_apart(s, dso, &file, f);
        }
        elf_file_close(&file);
        if (fd >= 0)
                close(fd);
        return r;
}

int call_frames_of(perfd_symbolizer *s, Dso *dso, CallFrames **ret) {
        Unwinder *u = &s->unwinder;
        const size_t most = s->memory_max / SHARE_OF_MEMORY;
        CallFrames *f = *ret = dso->frames;
        int r;

        if (f && u->newest != f) {
                take_out(u, f);
                put_in(u, f);
        }
        if (dso->has_frames_tried)
                return 0;
        f = calloc(1, sizeof(*f));
        if (!f)
                return -ENOMEM;
        dso->has_frames_tried = true;
        r = read_frames(s, dso, f);
        f->bytes = sizeof(*f) + frame_section_bytes(&f->sections[0]) + frame_section_bytes(&f->sections[1]);
        if (r != 0 || f->sections[0].n_entries + f->sections[1].n_entries == 0 || f->bytes > most) {
                call_frames_free(s, f);
                return r;
        }
        while (u->oldest && u->bytes + f->bytes > most) {
                call_frames_free(s, u->oldest);
                s->counts.evicted++;
        }
        f->dso = dso;
        f->serial = ++u->serial;
        u->bytes += f->bytes;
        symbolizer_count_table(s, 0, f->bytes);
        put_in(u, f);
        *ret = dso->frames = f;
        return 0;
}
