/*
 * Patterns are matched with paths, of up to 4096 bytes, for each sample of a flood. A text is compared once: the answers of
 * the last texts are kept by their serial numbers, which no other text ever has again. Many processes share few texts, and
 * a program that makes new ones pays for each with an exec(2), or a cgroup.
 */
#include "daemon/route/process-condition.h"

#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/model/container.h"
#include "daemon/route/filter-process.h"

#define ANSWERS 16 /* a power of two */
#define SHORT_ID ((size_t)12) /* letters of a container's id, as docker ps(1) shows it */
#define LONG_ID ((size_t)64)

typedef struct Answer {
        uint64_t text; /* Text.serial; 0: none */
        bool holds;
} Answer;

/* A comparison; without one, something that readers know. */
typedef struct Part {
        ProcessPart of;
        FilterKind relation;
        Pattern *pattern;  /* of texts */
        int64_t number;    /* of uid */
        Answer answers[ANSWERS];
} Part;

/* In post-order: FILTER_NUMBER is the next part, the others take what is on top of the stack. */
struct ProcessCondition {
        uint32_t n_parts, n_steps;
        Part parts[CONDITION_PARTS];
        FilterKind steps[];
};

ProcessCondition *process_condition_free(ProcessCondition *c) {
        if (!c)
                return NULL;
        for (uint32_t i = 0; i < c->n_parts; i++)
                pattern_free(c->parts[i].pattern);
        free(c);
        return NULL;
}

size_t process_condition_size(const ProcessCondition *c) {
        size_t size = malloc_usable_size((void *)c);

        for (uint32_t i = 0; i < c->n_parts; i++)
                size += c->parts[i].pattern ? malloc_usable_size(c->parts[i].pattern) : 0;
        return size;
}

/* A uid is below 2^32: what a constant is beyond 63 bits makes no difference. */
static int64_t number_of(const FilterNode *constant) {
        return constant->negative || constant->number <= INT64_MAX ? (int64_t)constant->number : INT64_MAX;
}

static int part_init(Part *p, const Filter *f, uint16_t node) {
        ProcessAtom atom;

        *p = (Part){ .of = PROCESS_NONE };
        if (!filter_process_atom(f, node, &atom))
                return 0;
        p->of = atom.part;
        p->relation = atom.relation;
        if (atom.part == PROCESS_UID) {
                p->number = number_of(atom.constant);
                return 0;
        }
        p->pattern = pattern_new(f->units + atom.constant->unit, atom.constant->n_units, f->sets);
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
                if (r < 0)
                        return r;
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

static bool match_text(const Part *p, const char *text, size_t length) {
        return pattern_match(p->pattern, (const uint8_t *)text, length);
}

/* A container's id is what people copy from what they see: it in full, or as it is shown. */
static bool match_container(const Part *p, const char *id) {
        size_t length = strlen(id);

        return match_text(p, id, length) || (length == LONG_ID && match_text(p, id, SHORT_ID));
}

static bool compare_text(const Part *p, const Text *text) {
        ContainerName name;
        bool matches;

        if (p->of == PROCESS_CONTAINER || p->of == PROCESS_UNIT)
                container_name_of(text->bytes, &name);
        matches = p->of == PROCESS_CONTAINER ? match_container(p, name.id) :
                  p->of == PROCESS_UNIT      ? match_text(p, name.unit, strlen(name.unit)) :
                                               match_text(p, text->bytes, text->length);
        return matches != (p->relation == FILTER_UNEQUAL);
}

static bool part_holds(Part *p, const Process *process) {
        const Text *text;
        Answer *answer;

        if (!process)
                return false;
        if (p->of == PROCESS_UID)
                return process->has_origin && compare_number(p, process->uid);
        text = p->of == PROCESS_EXE ? process->executable : process->cgroup;
        if (!text)
                return false;
        answer = &p->answers[text->serial % ANSWERS];
        if (answer->text != text->serial)
                *answer = (Answer){ .text = text->serial, .holds = compare_text(p, text) };
        return answer->holds;
}

bool process_condition_holds(ProcessCondition *c, const ConditionWord *word, const Process *process) {
        uint64_t stack = 0; /* a bit for each answer, the last one lowest */
        unsigned part = 0;

        for (uint32_t i = 0; i < c->n_steps; i++) {
                uint64_t top = stack & 1;

                switch (c->steps[i]) {
                case FILTER_NUMBER:
                        top = word->known >> part & 1 ? word->holds >> part & 1 : part_holds(&c->parts[part], process);
                        stack = stack << 1 | top;
                        part++;
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
