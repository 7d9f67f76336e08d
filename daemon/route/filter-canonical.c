/*
 * A Filter back to text, for comparing subscriptions. Only spelling is made normal: operands are neither sorted nor
 * folded, so that what a person reads in a status is still what somebody wrote.
 */
#include <inttypes.h>
#include <stdio.h>

#include "daemon/route/filter-tree.h"

static void write_byte(FILE *to, unsigned byte, const char *special) {
        bool escape = false;

        for (; *special; special++)
                escape = escape || (unsigned char)*special == byte;
        if (byte < 0x20 || byte >= 0x7f)
                fprintf(to, "\\x%02x", byte);
        else
                fprintf(to, escape ? "\\%c" : "%c", byte);
}

/* Ranges of members, in the order of bytes. */
static void write_set(FILE *to, const PatternSet *s) {
        static const char special[] = "\\\"'[]^!-";

        fputc('[', to);
        for (unsigned from = 1, end; from < 256; from = end + 1) {
                for (end = from; end < 256 && pattern_set_has(s, (uint8_t)end); end++)
                        ;
                if (end == from)
                        continue;
                write_byte(to, from, special);
                if (end - from > 1) {
                        fputc('-', to);
                        write_byte(to, end - 1, special);
                }
        }
        fputc(']', to);
}

static void write_text(FILE *to, const Filter *f, const FilterNode *n) {
        char quote = n->character ? '\'' : '"';

        fputc(quote, to);
        for (uint32_t i = n->unit; i < n->unit + n->n_units; i++)
                if (f->units[i] < UNIT_STAR)
                        write_byte(to, f->units[i], "\\\"'*?[");
                else if (f->units[i] >= UNIT_SET)
                        write_set(to, &f->sets[f->units[i] - UNIT_SET]);
                else
                        fputc(f->units[i] == UNIT_STAR ? '*' : '?', to);
        fputc(quote, to);
}

static void write_leaf(FILE *to, const Filter *f, const FilterNode *n) {
        if (n->kind == FILTER_TEXT)
                write_text(to, f, n);
        else if (n->kind == FILTER_NUMBER && n->negative)
                fprintf(to, "%" PRId64, (int64_t)n->number);
        else if (n->kind == FILTER_NUMBER)
                fprintf(to, "%" PRIu64, n->number);
        else if (n->element >= 0)
                fprintf(to, "%s[%d]", n->name, (int)n->element);
        else
                fputs(n->name, to);
}

/* How tightly it binds; && || & | are associative, so that their own kind needs no parentheses on either side. */
static int binding(FilterKind k) {
        if (filter_is_leaf(k))
                return 6;
        return k == FILTER_BIT_AND  ? 5
               : k == FILTER_BIT_OR ? 4
               : k == FILTER_NOT    ? 2
               : k == FILTER_AND    ? 1
               : k == FILTER_OR     ? 0
                                    : 3;
}

static void write_node(FILE *to, const Filter *f, uint16_t node, int outer) {
        const FilterNode *n = &f->nodes[node];
        int own = binding(n->kind);
        bool parentheses = own < outer;

        if (filter_is_leaf(n->kind)) {
                write_leaf(to, f, n);
                return;
        }
        if (parentheses)
                fputc('(', to);
        if (n->kind == FILTER_NOT) {
                fputc('!', to);
                write_node(to, f, n->left, f->nodes[n->left].kind == FILTER_NOT ? own : 6);
        } else {
                write_node(to, f, n->left, own);
                fprintf(to, " %s ", filter_operator(n->kind));
                write_node(to, f, n->right, own);
        }
        if (parentheses)
                fputc(')', to);
}

char *filter_canonical(const Filter *f) {
        _cleanup_free_ char *text = NULL;
        size_t size;
        FILE *to = open_memstream(&text, &size);
        int failed;

        if (!to)
                return NULL;
        write_node(to, f, (uint16_t)(f->n_nodes - 1), 0);
        failed = ferror(to);
        if (fclose(to) != 0 || failed)
                return NULL;
        return TAKE_PTR(text);
}
