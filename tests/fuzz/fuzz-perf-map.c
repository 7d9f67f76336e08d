/* Bytes as /tmp/perf-PID.map: whatever they say, reading ends, pieces are sorted and disjoint, and each is found with its name. */
#include <stdlib.h>
#include <string.h>

#include "client/symbols/perf-map.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

#define MUST(x)                                                                                                        \
        do {                                                                                                           \
                if (!(x))                                                                                              \
                        abort();                                                                                       \
        } while (0)

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length) {
        char *text = malloc(length + 1);
        SymbolTable t;

        MUST(text);
        memcpy(text, bytes, length);
        text[length] = '\0';
        symbol_table_init(&t, (size_t)1 << 20, true);
        MUST(symbol_table_parse_perf_map(&t, text) == 0);
        for (size_t i = 0; i < t.n; i++) {
                Symbol *s = t.symbols + i;

                MUST(s->length > 0 && (i == 0 || s->start - s[-1].start >= s[-1].length));
                MUST(symbol_table_find(&t, s->start) == s && symbol_table_find(&t, s->start + s->length - 1) == s);
                MUST(symbol_table_name(&t, s).length > 0);
        }
        symbol_table_deinit(&t);
        free(text);
        return 0;
}
