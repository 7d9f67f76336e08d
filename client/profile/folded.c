/* Stacks that differ only in what this form does not have (threads, lines, addresses) are one line. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "client/profile/folded.h"
#include "client/profile/file-end.h"
#include "client/profile/stack-tree.h"

static void put_name(FILE *out, const char *name) {
        for (; *name; name++)
                (void)putc(*name == ';' ? ':' : (unsigned char)*name < ' ' || *name == 0x7f ? ' ' : *name, out);
}

static const char *const marks[N_FRAME_KINDS] = { [FRAME_KERNEL] = "_[k]", [FRAME_INLINED] = "_[i]" };

static void put_node(FILE *out, const Profile *p, const StackNode *node) {
        if (node->comm != ID_NONE) {
                put_name(out, p->strings[node->comm]);
                return;
        }
        (void)putc(';', out);
        put_name(out, p->strings[p->functions[node->function].symbol]);
        if (marks[p->functions[node->function].kind])
                (void)fputs(marks[p->functions[node->function].kind], out);
}

static void put_stack(FILE *out, const Profile *p, const StackTree *t, uint32_t end, uint64_t sum) {
        uint32_t path[PROFILE_DEPTH_MAX + 1]; /* and the comm */
        size_t n = 0;

        for (; end != 0; end = t->nodes[end].parent)
                path[n++] = end;
        while (n > 0)
                put_node(out, p, &t->nodes[path[--n]]);
        (void)fprintf(out, " %" PRIu64 "\n", sum);
}

int folded_write(FILE *out, const Profile *p, size_t value) {
        StackTree t;
        uint64_t *sums = NULL;
        int r = stack_tree_init(&t, p);

        errno = 0;
        if (r == 0)
                sums = calloc(t.n_nodes, sizeof(*sums));
        if (r == 0 && !sums)
                r = -ENOMEM;
        for (uint32_t i = 0; r == 0 && i < p->n_stacks; i++)
                sums[t.ends[i]] += p->sums[(size_t)i * p->n_values + value];
        for (uint32_t i = 0; r == 0 && i < t.n_nodes; i++)
                if (sums[i] > 0)
                        put_stack(out, p, &t, i, sums[i]);
        stack_tree_deinit(&t);
        free(sums);
        return r != 0 ? r : file_end(out);
}
