#include "client/perfctl/print/csv.h"

#include <errno.h>
#include <unistd.h>

#include "client/perfctl/base/text.h"

#define BYTE_FIRST 0xef80u /* as json.c writes a byte that is no UTF-8, and the bytes of these characters themselves */
#define BYTE_LAST 0xefffu

static void put_bytes(Output *o, const char *at, size_t n) {
        for (size_t i = 0; i < n; i++) {
                const uint32_t c = BYTE_FIRST - 0x80 + (unsigned char)at[i];
                const char character[] = { (char)(0xe0 | c >> 12), (char)(0x80 | (c >> 6 & 0x3f)), (char)(0x80 | (c & 0x3f)) };

                output_put(o, character, sizeof(character));
        }
}

static void put_hidden(Output *o, const char *at, size_t n) {
        for (size_t i = 0; i < n; i++) {
                output_put(o, "\\x", 2);
                output_put_hex_bytes(o, at + i, 1);
        }
}

static bool is_plain(perfd_text text) {
        for (size_t i = 0; i < text.length; i++) {
                const char c = text.bytes[i];

                if (c < ' ' || c > '~' || c == '"' || c == ',')
                        return false;
        }
        return text.length > 0;
}

void csv_put_text(Output *o, perfd_text text, bool is_terminal) {
        if (is_plain(text)) {
                output_put(o, text.bytes, text.length);
                return;
        }
        output_put_char(o, '"');
        for (size_t i = 0, length; i < text.length; i += length > 0 ? length : 1) {
                const char *at = text.bytes + i;
                const size_t left = text.length - i;
                uint32_t c;

                length = utf8_length(at, left);
                c = length > 0 ? utf8_character(at, length) : 0;
                if (length == 0)
                        put_bytes(o, at, 1);
                else if (c >= BYTE_FIRST && c <= BYTE_LAST)
                        put_bytes(o, at, length);
                else if (c == '"')
                        output_put(o, "\"\"", 2);
                else if (is_terminal && text_printable_length(at, left) == 0)
                        put_hidden(o, at, length);
                else
                        output_put(o, at, length);
        }
        output_put_char(o, '"');
}

int csv_copy(Output *o, int fd, size_t n_columns) {
        char bytes[1 << 16];
        size_t n_values = 1;
        bool is_quoted = false;

        for (off_t at = 0;;) {
                const ssize_t n = pread(fd, bytes, sizeof(bytes), at);

                if (n < 0 && errno == EINTR)
                        continue;
                if (n <= 0 || o->error != 0)
                        return n < 0 ? -errno : 0;
                for (ssize_t i = 0; i < n; i++) {
                        if (bytes[i] == '"')
                                is_quoted = !is_quoted; /* twice where they are doubled */
                        else if (!is_quoted && bytes[i] == ',')
                                n_values++;
                        else if (!is_quoted && bytes[i] == '\n') {
                                for (; n_values < n_columns; n_values++)
                                        output_put_char(o, ',');
                                n_values = 1;
                        }
                        output_put_char(o, bytes[i]);
                }
                at += n;
        }
}
