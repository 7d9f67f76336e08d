/*
 * What a condition costs whoever asks it of a sample, at most, and before it is known of which events it is: in units of one
 * comparison of a number, some nanoseconds. What clients may ask is limited in these units, so no condition may take much longer
 * than it counts.
 *
 * A condition that asks for the process is asked twice, as a whole by readers and part by part: by them, and by the dispatcher.
 *
 * A pattern is searched in a text, at worst with a part of it at each place (base/pattern.c). The name of a thread is short; other
 * texts are taken to be as long as a path is. A longer one costs more, but it also takes more room in the ring.
 */
#include "daemon/route/filter-process.h"

#include <string.h>

#include "daemon/model/record.h"

#define TEXT_SIZE ((size_t)256)
#define TEXT_COST ((size_t)2) /* to find it and to compare its beginning; and for a star, where it ends, one more */
#define MASK_COST 3           /* & or | of two numbers that both come from the sample */
#define PLAIN_AT_ONCE 32      /* characters that are compared in the time of a unit */
#define UNITS_AT_ONCE 8       /* the same with `?` or sets among them */
#define DECISION_COST ((size_t)3)  /* to find a condition and its word, and what becomes of the item; measured: some 25 ns */
#define REMEMBERED ((size_t)16)    /* one part of so many: a path is compared when a sample is of another one than the last ones */

/* To try a part at each place: plain characters are found by functions that are called again behind each first one. */
static size_t part_cost(size_t length, bool is_plain, size_t size) {
        size_t n_places = length < size ? size - length + 1 : 1;

        return is_plain ? n_places * (1 + length / PLAIN_AT_ONCE) : n_places * length / UNITS_AT_ONCE;
}

/* Of the part that takes longest: what one finds is not looked at by the next. What is not between two stars has its place. */
static size_t search_cost(const uint16_t *units, size_t n, size_t size) {
        size_t most = 0, length = 0, n_stars = 0;
        bool is_plain = true;

        for (size_t i = 0; i < n; i++) {
                if (units[i] != UNIT_STAR) {
                        length++;
                        is_plain = is_plain && units[i] < UNIT_STAR;
                        continue;
                }
                if (n_stars++ > 0 && length > 0 && part_cost(length, is_plain, size) > most)
                        most = part_cost(length, is_plain, size);
                length = 0;
                is_plain = true;
        }
        return most;
}

static bool is_comm(const FilterNode *n) {
        return n->kind == FILTER_NAME && (strcmp(n->name, "comm") == 0 || strcmp(n->name, "sample.comm") == 0);
}

/* Of a comparison with a text. */
static size_t text_cost(const Filter *f, const FilterNode *constant, const FilterNode *other) {
        size_t size = is_comm(other) ? COMM_SIZE : TEXT_SIZE, n_stars = 0;
        const uint16_t *units = f->units + constant->unit;

        for (uint32_t i = 0; i < constant->n_units; i++)
                n_stars += units[i] == UNIT_STAR;
        if (constant->n_units - n_stars > size && is_comm(other))
                return 1; /* it is longer than any name */
        return TEXT_COST + (n_stars > 0) + constant->n_units / PLAIN_AT_ONCE + search_cost(units, constant->n_units, size);
}

static size_t comparison_cost(const Filter *f, const FilterNode *n) {
        const FilterNode *left = &f->nodes[n->left], *right = &f->nodes[n->right];

        if (right->kind == FILTER_TEXT && !(right->character && n->kind != FILTER_GLOB))
                return text_cost(f, right, left);
        if (left->kind == FILTER_TEXT && !left->character)
                return text_cost(f, left, right);
        if (left->kind == FILTER_NAME && right->kind == FILTER_NAME)
                return TEXT_COST; /* two numbers, or two texts */
        return 1;
}

/* Of one node. */
static size_t node_cost(const Filter *f, const FilterNode *n) {
        if (filter_is_comparison(n->kind))
                return comparison_cost(f, n);
        if (n->kind == FILTER_BIT_AND || n->kind == FILTER_BIT_OR)
                return f->nodes[n->left].kind == FILTER_NUMBER || f->nodes[n->right].kind == FILTER_NUMBER ? 0 : MASK_COST;
        if (n->kind == FILTER_AND || n->kind == FILTER_OR)
                return (size_t)!filter_is_condition(f->nodes[n->left].kind) + !filter_is_condition(f->nodes[n->right].kind);
        return 0;
}

size_t filter_cost(const Filter *f) {
        size_t cost = 0;

        for (uint32_t i = 0; i < f->n_nodes; i++)
                cost += node_cost(f, &f->nodes[i]);
        return (cost > 0 ? cost : 1) * (filter_asks_process(f) ? 2 : 1);
}

/* In halves. What readers have answered is still a part of what the dispatcher has to join, and each `&&`, `||` and `!` a step. */
static size_t decision_of_node(const Filter *f, uint16_t node) {
        const FilterNode *n = &f->nodes[node];
        ProcessAtom atom;

        if (n->kind == FILTER_AND || n->kind == FILTER_OR)
                return 1 + 2 * node_cost(f, n);
        if (n->kind == FILTER_NOT)
                return 1 + 2 * (size_t)!filter_is_condition(f->nodes[n->left].kind);
        if (!filter_is_comparison(n->kind))
                return 0;
        if (!filter_process_atom(f, node, &atom) || atom.part == PROCESS_UID)
                return 2;
        return 2 * (atom.part == PROCESS_COMM ? comparison_cost(f, n) : TEXT_COST + comparison_cost(f, n) / REMEMBERED);
}

size_t filter_decision_cost(const Filter *f) {
        size_t halves = 0;

        if (!filter_asks_process(f))
                return 0;
        for (uint32_t i = 0; i < f->n_nodes; i++)
                halves += decision_of_node(f, (uint16_t)i);
        return DECISION_COST + (halves + 1) / 2;
}
