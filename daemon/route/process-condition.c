/*
 * Patterns are matched with paths, of up to 4096 bytes, for each sample of a flood. A text is compared once: the answers of
 * the last texts are kept by their serial numbers, which no other text ever has again. Many processes share few texts, and
 * a program that makes new ones pays for each with an exec(2), or a cgroup. In the same way all parts that ask for the name of a
 * thread are asked once of a name. What the answers of all parts come to is kept for the last ones, which samples of a flood share.
 */
#include "daemon/route/process-condition.h"

#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/model/container.h"
#include "daemon/route/filter-process.h"

#define ANSWERS 16 /* a power of two */
#define NAMES_BITS 3
#define SHORT_ID ((size_t)12) /* letters of a container's id, as docker ps(1) shows it */
#define LONG_ID ((size_t)64)

typedef struct Answer {
        uint64_t text; /* Text.serial; 0: none */
        bool holds;
} Answer;

/* In post-order: a pattern is a comparison with the thread's name, all others take what is on top of the stack. */
typedef struct CommStep {
        FilterKind kind; /* FILTER_TEXT: a comparison */
        bool is_unequal;
        Pattern *pattern;
} CommStep;

/* A comparison, or all those of comm; without one, something that readers know. */
typedef struct Part {
        ProcessPart of;
        FilterKind relation;
        Pattern *pattern;  /* of texts */
        int64_t number;    /* of uid */
        CommStep *comm;
        uint32_t n_comm;
        Answer answers[ANSWERS];
} Part;

/* Of a name of a thread: the answers of all parts that ask for it, a bit for each. */
typedef struct NameAnswers {
        char comm[COMM_SIZE];
        uint32_t holds;
        bool is_known;
} NameAnswers;

/* In post-order: FILTER_NUMBER is the next part, the others take what is on top of the stack. */
struct ProcessCondition {
        uint32_t n_parts, n_steps;
        uint32_t of_comm, of_others; /* the parts that ask for the name of the thread, and for anything else of the process */
        uint32_t last;               /* answers of all parts, and what they came to */
        bool is_last_known, holds;
        NameAnswers names[1 << NAMES_BITS];
        Part parts[CONDITION_PARTS];
        FilterKind steps[];
};

ProcessCondition *process_condition_free(ProcessCondition *c) {
        if (!c)
                return NULL;
        for (uint32_t i = 0; i < c->n_parts; i++) {
                pattern_free(c->parts[i].pattern);
                for (uint32_t k = 0; k < c->parts[i].n_comm; k++)
                        pattern_free(c->parts[i].comm[k].pattern);
                free(c->parts[i].comm);
        }
        free(c);
        return NULL;
}

size_t process_condition_size(const ProcessCondition *c) {
        size_t size = malloc_usable_size((void *)c);

        for (uint32_t i = 0; i < c->n_parts; i++) {
                size += malloc_usable_size(c->parts[i].pattern) + malloc_usable_size(c->parts[i].comm);
                for (uint32_t k = 0; k < c->parts[i].n_comm; k++)
                        size += malloc_usable_size(c->parts[i].comm[k].pattern);
        }
        return size;
}

/* A uid is below 2^32: what a constant is beyond 63 bits makes no difference. */
static int64_t number_of(const FilterNode *constant) {
        return constant->negative || constant->number <= INT64_MAX ? (int64_t)constant->number : INT64_MAX;
}

static Pattern *pattern_of(const Filter *f, const FilterNode *constant) {
        return pattern_new(f->units + constant->unit, constant->n_units, f->sets);
}

static int part_init_comm(Part *p, const Filter *f, uint16_t node) {
        const uint32_t first = f->nodes[node].first;

        p->of = PROCESS_COMM;
        p->comm = calloc(node - first + 1, sizeof(*p->comm));
        if (!p->comm)
                return error_origin(-ENOMEM);
        for (uint32_t i = first; i <= node; i++) {
                CommStep *step = &p->comm[p->n_comm];
                ProcessAtom atom;

                if (filter_is_leaf(f->nodes[i].kind))
                        continue;
                step->kind = f->nodes[i].kind;
                p->n_comm++;
                if (!filter_process_atom(f, (uint16_t)i, &atom))
                        continue;
                step->kind = FILTER_TEXT;
                step->is_unequal = atom.relation == FILTER_UNEQUAL;
                step->pattern = pattern_of(f, atom.constant);
                if (!step->pattern)
                        return error_origin(-ENOMEM);
        }
        return 0;
}

static int part_init(Part *p, const Filter *f, uint16_t node) {
        ProcessAtom atom;

        *p = (Part){ .of = PROCESS_NONE };
        if (filter_is_of_comm(f, node))
                return part_init_comm(p, f, node);
        if (!filter_process_atom(f, node, &atom))
                return 0;
        p->of = atom.part;
        p->relation = atom.relation;
        if (atom.part == PROCESS_UID) {
                p->number = number_of(atom.constant);
                return 0;
        }
        p->pattern = pattern_of(f, atom.constant);
        return p->pattern ? 0 : error_origin(-ENOMEM);
}

/* What is above the parts is left of the tree when they are taken out. */
static void add_steps(ProcessCondition *c, const Filter *f, const FilterSplit *split) {
        uint32_t next = 0;

        for (unsigned i = 0; i <= split->n; i++) {
                uint32_t first = i < split->n ? f->nodes[split->parts[i].node].first : f->n_nodes;

                while (next < first)
                        c->steps[c->n_steps++] = f->nodes[next++].kind;
                if (i == split->n)
                        break;
                c->steps[c->n_steps++] = FILTER_NUMBER;
                next = split->parts[i].node + 1u;
        }
}

int process_condition_new(const Filter *f, ProcessCondition **ret, Explanation *e) {
        _cleanup_(process_condition_freep) ProcessCondition *c = NULL;
        FilterSplit split;
        int r = filter_split(f, &split, e);

        if (r != 0)
                return r;
        c = calloc(1, sizeof(*c) + f->n_nodes * sizeof(*c->steps));
        if (!c)
                return error_origin(-ENOMEM);
        for (; c->n_parts < split.n; c->n_parts++) {
                r = part_init(&c->parts[c->n_parts], f, split.parts[c->n_parts].node);
                if (r < 0) {
                        c->n_parts++; /* half of it */
                        return r;
                }
                if (c->parts[c->n_parts].of == PROCESS_COMM)
                        c->of_comm |= 1U << c->n_parts;
                else if (c->parts[c->n_parts].of != PROCESS_NONE)
                        c->of_others |= 1U << c->n_parts;
        }
        add_steps(c, f, &split);
        *ret = TAKE_PTR(c);
        return 0;
}

static bool compare_number(const Part *p, int64_t number) {
        switch (p->relation) {
        case FILTER_EQUAL:
                return number == p->number;
        case FILTER_UNEQUAL:
                return number != p->number;
        case FILTER_LESS:
                return number < p->number;
        case FILTER_LESS_EQUAL:
                return number <= p->number;
        case FILTER_GREATER:
                return number > p->number;
        default:
                return number >= p->number;
        }
}

static bool match_text(const Pattern *pattern, const char *text, size_t length) {
        return pattern_match(pattern, (const uint8_t *)text, length);
}

/* A container's id is what people copy from what they see: it in full, or as it is shown. */
static bool match_container(const Part *p, const char *id) {
        size_t length = strlen(id);

        return match_text(p->pattern, id, length) || (length == LONG_ID && match_text(p->pattern, id, SHORT_ID));
}

static bool compare_text(const Part *p, const Text *text) {
        ContainerName name;
        bool matches;

        if (p->of == PROCESS_CONTAINER || p->of == PROCESS_UNIT)
                container_name_of(text->bytes, &name);
        matches = p->of == PROCESS_CONTAINER ? match_container(p, name.id) :
                  p->of == PROCESS_UNIT      ? match_text(p->pattern, name.unit, strlen(name.unit)) :
                                               match_text(p->pattern, text->bytes, text->length);
        return matches != (p->relation == FILTER_UNEQUAL);
}

static bool comm_holds(const Part *p, const char *comm) {
        const size_t length = strnlen(comm, COMM_SIZE);
        bool stack[FILTER_MAX_TERMS / 2 + 1]; /* a comparison has two terms */
        size_t n = 0;

        for (const CommStep *step = p->comm, *end = step + p->n_comm; step < end; step++)
                switch (step->kind) {
                case FILTER_TEXT:
                        stack[n++] = match_text(step->pattern, comm, length) != step->is_unequal;
                        break;
                case FILTER_NOT:
                        stack[n - 1] = !stack[n - 1];
                        break;
                case FILTER_AND:
                        n--;
                        stack[n - 1] = stack[n - 1] && stack[n];
                        break;
                default:
                        n--;
                        stack[n - 1] = stack[n - 1] || stack[n];
                        break;
                }
        return stack[0];
}

static bool part_holds(Part *p, const Task *task) {
        const Process *process = task ? task->process : NULL;
        const Text *text;
        Answer *answer;

        if (!process)
                return false;
        if (p->of == PROCESS_UID)
                return process->has_uid && compare_number(p, process->uid);
        text = p->of == PROCESS_EXE ? process->executable : process->cgroup;
        if (!text)
                return false;
        answer = &p->answers[text->serial % ANSWERS];
        if (answer->text != text->serial)
                *answer = (Answer){ .text = text->serial, .holds = compare_text(p, text) };
        return answer->holds;
}

/* Names that share a place take turns in it: the place is by the first letters, which costs less than by all. */
static uint32_t ask_for_name(ProcessCondition *c, const char comm[static COMM_SIZE]) {
        NameAnswers *n;
        uint64_t letters;

        memcpy(&letters, comm, sizeof(letters));
        n = &c->names[letters * 0x9e3779b97f4a7c15U >> (64 - NAMES_BITS)];
        if (n->is_known && memcmp(n->comm, comm, COMM_SIZE) == 0)
                return n->holds;
        memcpy(n->comm, comm, COMM_SIZE);
        n->is_known = true;
        n->holds = 0;
        for (uint32_t left = c->of_comm; left; left &= left - 1)
                if (comm_holds(&c->parts[__builtin_ctz(left)], comm))
                        n->holds |= left & -left;
        return n->holds;
}

/* Of these parts. */
static uint32_t ask_for_process(ProcessCondition *c, uint32_t parts, const Task *task) {
        static const char nobody[COMM_SIZE] = "";
        uint32_t holds = 0;

        for (uint32_t left = parts & c->of_others; left; left &= left - 1)
                if (part_holds(&c->parts[__builtin_ctz(left)], task))
                        holds |= left & -left;
        if (parts & c->of_comm)
                holds |= ask_for_name(c, task ? task->comm : nobody) & parts;
        return holds;
}

/* What the answers of all parts come to. */
static bool join_parts(const ProcessCondition *c, uint32_t answers) {
        uint64_t stack = 0; /* a bit for each answer, the last one lowest */

        for (uint32_t i = 0; i < c->n_steps; i++) {
                uint64_t top = stack & 1;

                switch (c->steps[i]) {
                case FILTER_NUMBER:
                        stack = stack << 1 | (answers & 1);
                        answers >>= 1;
                        break;
                case FILTER_NOT:
                        stack ^= 1;
                        break;
                case FILTER_AND:
                        stack = (stack >> 1) & (top | ~(uint64_t)1);
                        break;
                default:
                        stack = (stack >> 1) | top;
                        break;
                }
        }
        return stack & 1;
}

bool process_condition_holds(ProcessCondition *c, const ConditionWord *word, const Task *task) {
        const uint32_t answers = (word->known & word->holds) | ask_for_process(c, ~word->known, task);

        if (!c->is_last_known || c->last != answers) {
                c->last = answers;
                c->holds = join_parts(c, answers);
                c->is_last_known = true;
        }
        return c->holds;
}
