/* The functions that were inlined at an address: a file's index has them as a chain of scopes, from the innermost to the function. */
#include <errno.h>
#include <stdlib.h>

#include "client/symbols/symbolizer.h"

static int make_room(perfd_symbolizer *s, size_t n) {
        perfd_frame *more;

        if (n <= s->inlined_room)
                return 0;
        more = reallocarray(s->inlined, n, sizeof(perfd_frame));
        if (!more)
                return -ENOMEM;
        s->inlined = more;
        s->inlined_room = n;
        return 0;
}

/* Each is at the line where it calls the one before it, the first at that of the address. */
static int list(perfd_symbolizer *s, Dso *dso, uint64_t address, const perfd_frame *function, size_t *ret_n) {
        LineIndex *x = dso ? dso->lines : NULL;
        const uint32_t innermost = x ? line_index_find_scope(x, address) : 0;
        const size_t bytes = lines_bytes(x);
        perfd_frame at = *function;
        size_t n = 1;

        for (uint32_t i = innermost; i != 0 && x->scopes[i].parent != 0; i = x->scopes[i].parent)
                n++;
        if (make_room(s, n) != 0)
                return -ENOMEM;
        *ret_n = n;
        n = 0;
        for (uint32_t i = innermost; i != 0 && x->scopes[i].parent != 0; i = x->scopes[i].parent) {
                at.symbol = line_index_name(x, x->scopes[i].name);
                at.note = at.symbol.length > 0 ? "" : "the inlined function has no name";
                at.offset = 0;
                s->inlined[n++] = at;
                at.file = line_index_text(x, x->scopes[i].call_file);
                at.line = x->scopes[i].call_line;
                at.line_note = at.file.length > 0 ? "" : "where it is called is not said";
        }
        at.symbol = function->symbol;
        at.note = function->note;
        at.offset = function->offset;
        s->inlined[n] = at;
        symbolizer_count_table(s, bytes, lines_bytes(x));
        return 0;
}

int perfd_symbolizer_find_inlined(perfd_symbolizer *s, uint32_t pid, uint64_t time, uint64_t ip, bool is_kernel, const perfd_frame **ret, size_t *ret_n) {
        perfd_frame function;
        uint64_t address = 0;
        Dso *dso = NULL;
        int r = find_frame(s, pid, time, ip, is_kernel, &function, &dso);

        if (r != 0)
                return r;
        if (dso && (!dso->symbols || !elf_symbols_address(dso->symbols, function.address, &address)))
                dso = NULL;
        r = list(s, dso, address, &function, ret_n);
        if (r == 0)
                *ret = s->inlined;
        return r;
}
