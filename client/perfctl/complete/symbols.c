/* Whatever the file has is only offered: perfd looks for itself. So what is not as it should be is nothing. */
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/perfctl/complete/complete.h"
#include "client/perfctl/connection/library.h"

#define STATIC_PROBE_NOTE 3 /* its type, in sys/sdt.h */

typedef struct Image {
        const uint8_t *bytes;
        size_t n;
} Image;

/* NULL: it is not all in the file. */
static const void *part(const Image *image, uint64_t offset, uint64_t n) {
        return offset <= image->n && n <= image->n - offset && offset % sizeof(ElfW(Word)) == 0 ? image->bytes + offset : NULL;
}

static void offer_table(Perfctl *p, const char *word, const char *before, const Image *image, const ElfW(Shdr) *table,
                        const ElfW(Shdr) *names) {
        const ElfW(Sym) *symbols = part(image, table->sh_offset, table->sh_size);
        const char *texts = names->sh_offset <= image->n && names->sh_size <= image->n - names->sh_offset ?
                                    (const char *)image->bytes + names->sh_offset :
                                    NULL;

        if (!symbols || !texts || names->sh_size == 0 || texts[names->sh_size - 1] != '\0')
                return;
        for (size_t i = 0; i < table->sh_size / sizeof(*symbols); i++) {
                const unsigned type = ELF64_ST_TYPE(symbols[i].st_info);

                if ((type == STT_FUNC || type == STT_GNU_IFUNC) && symbols[i].st_shndx != SHN_UNDEF &&
                    symbols[i].st_name < names->sh_size && texts[symbols[i].st_name])
                        complete_offer(p, word, before, texts + symbols[i].st_name);
        }
}

/* One static probe: where it is, as three addresses, then its texts. */
static void offer_note(Perfctl *p, const char *word, const char *before, const char *bytes, size_t n) {
        const size_t addresses = 3 * sizeof(ElfW(Addr));
        const char *provider = bytes + addresses, *name;
        char *probe;

        if (n <= addresses || !memchr(provider, '\0', n - addresses))
                return;
        name = provider + strlen(provider) + 1;
        if (name >= bytes + n || !memchr(name, '\0', (size_t)(bytes + n - name)))
                return;
        if (asprintf(&probe, "%s:%s", provider, name) < 0)
                probe = must_have(NULL);
        complete_offer(p, word, before, probe);
        free(probe);
}

static size_t padded(size_t n) {
        return (n + 3) / 4 * 4;
}

/* Those of .note.stapsdt are aligned to 4 bytes. */
static void offer_notes(Perfctl *p, const char *word, const char *before, const Image *image, const ElfW(Shdr) *section) {
        const char *bytes = part(image, section->sh_offset, section->sh_size);
        size_t left = bytes ? section->sh_size : 0;

        while (left >= sizeof(ElfW(Nhdr))) {
                const ElfW(Nhdr) *note = (const void *)bytes;
                const uint64_t at = sizeof(*note) + padded((size_t)note->n_namesz), end = at + note->n_descsz;
                size_t next = padded(end);

                if (end > left)
                        return;
                if (note->n_type == STATIC_PROBE_NOTE && note->n_namesz == sizeof("stapsdt") &&
                    memcmp(note + 1, "stapsdt", sizeof("stapsdt")) == 0)
                        offer_note(p, word, before, bytes + at, note->n_descsz);
                if (next >= left)
                        return;
                bytes += next;
                left -= next;
        }
}

static void offer_image(Perfctl *p, const char *word, const char *before, const Image *image, bool is_static) {
        const ElfW(Ehdr) *header = part(image, 0, sizeof(*header));
        const ElfW(Shdr) *sections;

        if (!header || memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 ||
            header->e_ident[EI_CLASS] != (sizeof(void *) == 8 ? ELFCLASS64 : ELFCLASS32) ||
            header->e_shentsize != sizeof(*sections))
                return;
        sections = part(image, header->e_shoff, (uint64_t)header->e_shnum * sizeof(*sections));
        for (size_t i = 0; sections && i < header->e_shnum; i++)
                if (is_static && sections[i].sh_type == SHT_NOTE)
                        offer_notes(p, word, before, image, &sections[i]);
                else if (!is_static && (sections[i].sh_type == SHT_DYNSYM || sections[i].sh_type == SHT_SYMTAB) &&
                         sections[i].sh_link < header->e_shnum)
                        offer_table(p, word, before, image, &sections[i], &sections[sections[i].sh_link]);
}

/* malloc'ed; NULL: there is none. */
static char *find_file(const char *file) {
        char *path = NULL, *others = NULL;

        if (strchr(file, '/'))
                return strdup(file);
        if (library_find(file, &path, &others) != 0 && program_find(file, &path) != 0)
                path = NULL;
        free(others);
        return path;
}

static void complete_file(Perfctl *p, const char *word, const char *before, const char *file, bool is_static) {
        char *path = find_file(file);
        int fd = path ? open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK) : -1;
        struct stat st;
        void *bytes;

        free(path);
        if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > 0) {
                bytes = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
                if (bytes != MAP_FAILED) {
                        offer_image(p, word, before, &(Image){ .bytes = bytes, .n = (size_t)st.st_size }, is_static);
                        (void)munmap(bytes, (size_t)st.st_size);
                }
        }
        if (fd >= 0)
                (void)close(fd);
}

void complete_symbols(Perfctl *p, const char *word, const char *before, const char *file) {
        complete_file(p, word, before, file, false);
}

void complete_static_probes(Perfctl *p, const char *word, const char *before, const char *file) {
        complete_file(p, word, before, file, true);
}
