/* Of which machine a recording is, as uname(1) called it there: its registers have the names of that one. */
#include <elf.h>
#include <fnmatch.h>
#include <string.h>

#include "client/recorded/recorded.h"
#include "client/recording/features.h"

#define NAME_ROOM 64 /* bytes: the longest has some ten */

int recorded_machine_of(perfd_recording *r, uint32_t *ret) {
        static const struct {
                const char *pattern;
                uint32_t machine;
        } known[] = { { "x86_64", EM_X86_64 }, { "i?86", EM_386 },   { "aarch64*", EM_AARCH64 }, { "arm*", EM_ARM },   { "ppc64*", EM_PPC64 },
                      { "ppc*", EM_PPC },      { "s390*", EM_S390 }, { "riscv*", EM_RISCV },     { "mips*", EM_MIPS }, { "loongarch*", EM_LOONGARCH } };
        char name[NAME_ROOM] = "";
        perfd_text text;
        Bytes b;
        int code;

        *ret = r->is_swapped ? EM_NONE : RECORDED_MACHINE_HERE;
        if (!recording_has(r, PERF_DATA_FEATURE_ARCH))
                return 0;
        code = feature_get(r, PERF_DATA_FEATURE_ARCH, &b);
        if (code != 0)
                return code;
        text = bytes_string(&b); /* what is damaged is said by whoever visits it */
        if (text.length < sizeof(name))
                memcpy(name, text.bytes, text.length);
        *ret = EM_NONE;
        for (size_t i = 0; i < sizeof(known) / sizeof(known[0]) && *ret == EM_NONE; i++)
                if (fnmatch(known[i].pattern, name, 0) == 0)
                        *ret = known[i].machine;
        return 0;
}
