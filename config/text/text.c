/*
 * Whatever a text is for, it ends in messages, in tables and in the log, and some of it in files of the kernel that have a
 * line for each thing: what is not seen there has no place in it.
 */
#include "config/text/text.h"

#include <string.h>

#include "daemon/base/printable.h"

static const char *character_error(const char *at) {
        uint32_t c;

        if (utf8_decode(at, &c) == 0)
                return "which is not UTF-8";
        if (c < 0xa0)
                return "which contains a control character";
        return "which contains an invisible character";
}

const char *text_error(const char *text, TextForm form, size_t *ret_offset) {
        const char *s = text;

        while (*s) {
                size_t n = printable_length(s);

                if (n == 0 && (form != TEXT_LINES || !strchr("\t\r\n", *s))) {
                        *ret_offset = (size_t)(s - text);
                        return character_error(s);
                }
                s += n > 0 ? n : 1;
        }
        return NULL;
}
