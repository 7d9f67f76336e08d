/* What prints goes out as it is, but for what means something in JSON or HTML. */
#include <stdbool.h>

#include "client/profile/json-text.h"
#include "client/profile/utf8.h"

static bool is_escaped(uint32_t c) {
        return c < ' ' || (c >= 0x7f && c < 0xa0) || c == '<' || c == '>' || c == '&' || c == 0x2028 || c == 0x2029;
}

void json_text_put(FILE *out, const char *text) {
        (void)putc('"', out);
        while (*text) {
                uint32_t character;
                size_t n = utf8_export(text, &character);

                if (is_escaped(character) || (n == 1 && character >= 0x80)) {
                        (void)fprintf(out, "\\u%04x", character);
                } else {
                        if (character == '"' || character == '\\')
                                (void)putc('\\', out);
                        (void)fwrite(text, 1, n, out);
                }
                text += n;
        }
        (void)putc('"', out);
}
