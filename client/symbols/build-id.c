/* For who writes recordings: the build id alone. */
#include <string.h>

#include "client/perfd/symbolizer.h"
#include "client/symbols/elf-symbols.h"

#define NOTES_LIMIT ((size_t)1 << 20) /* bytes */

size_t perfd_build_id_read(int fd, uint8_t ret[PERFD_BUILD_ID_MAX]) {
        ElfFile f = ELF_FILE_NULL;
        size_t n = 0;

        if (!elf_file_open(&f, fd, NOTES_LIMIT))
                return 0;
        if (f.id.n <= PERFD_BUILD_ID_MAX) {
                n = f.id.n;
                memcpy(ret, f.id.bytes, n);
        }
        elf_file_close(&f);
        return n;
}
