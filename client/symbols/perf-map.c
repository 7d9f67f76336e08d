/* A compiler that moves code appends another line for the same addresses: the last one holds. Lines are read from
 * the last to the first, so that what has no room is what came first. */
#include "client/symbols/perf-map.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* Digits of hex, "0x" before them or not. False: there are none, or more than 64 bits */
static bool take_hex(char **at, uint64_t *ret) {
        char *end;

        if (**at == ' ' || **at == '-' || **at == '+')
                return false;
        errno = 0;
        *ret = strtoull(*at, &end, 16);
        if (end == *at || errno != 0 || *end != ' ')
                return false;
        *at = end + 1;
        return true;
}

static int parse_line(SymbolTable *t, char *line, unsigned rank) {
        uint64_t start, length;

        if (!take_hex(&line, &start) || !take_hex(&line, &length) || length == 0 || !*line)
                return 0;
        return symbol_table_add(t, start, length, line, strlen(line), rank);
}

int symbol_table_parse_perf_map(SymbolTable *t, char *text) {
        char *end = text + strlen(text);
        unsigned rank = UINT32_MAX;
        int r = 0;

        while (r == 0 && end > text) {
                char *line;

                while (end > text && end[-1] == '\n')
                        *--end = '\0';
                line = memrchr(text, '\n', (size_t)(end - text));
                line = line ? line + 1 : text;
                r = parse_line(t, line, rank--);
                end = line;
        }
        return r == 0 ? symbol_table_finish(t, true) : r;
}
