/*
 * Patterns are cut at their stars: the first part must stand at the beginning, the last at the end, and each between is
 * searched behind the one before. Taking the first place for each is enough, so nothing is ever taken back and a
 * hostile pattern cannot make a reader's time explode: long plain parts are found by memmem(3) in linear time, and what
 * is tried at each place has a bounded length (PATTERN_MAX_SEARCHED).
 */
#include "daemon/base/pattern.h"

#include <string.h>

Pattern *pattern_new(const uint16_t *units, uint32_t n_units, const PatternSet *sets) {
        size_t n_sets = 0, n_parts = 1, size;
        PatternPart *part;
        PatternSet *set;
        uint16_t *unit;
        uint8_t *byte;
        Pattern *p;

        for (uint32_t i = 0; i < n_units; i++) {
                n_sets += units[i] >= UNIT_SET;
                n_parts += units[i] == UNIT_STAR;
        }
        size = sizeof(*p) + n_sets * sizeof(*set) + n_parts * sizeof(*part) + n_units * (sizeof(*unit) + sizeof(*byte));
        p = calloc(1, size);
        if (!p)
                return NULL;
        p->sets = set = (PatternSet *)(p + 1); /* by falling alignment */
        p->parts = part = (PatternPart *)(set + n_sets);
        p->units = unit = (uint16_t *)(part + n_parts);
        p->bytes = byte = (uint8_t *)(unit + n_units);
        p->n_parts = (uint32_t)n_parts;
        p->min_length = n_units - (uint32_t)(n_parts - 1);

        part->plain = true;
        n_sets = 0;
        for (uint32_t i = 0; i < n_units; i++) {
                unit[i] = units[i];
                if (units[i] == UNIT_STAR) {
                        *++part = (PatternPart){ .begin = i + 1, .plain = true };
                        continue;
                }
                part->length++;
                if (units[i] < UNIT_STAR) {
                        byte[i] = (uint8_t)units[i];
                        continue;
                }
                part->plain = false;
                if (units[i] >= UNIT_SET) {
                        set[n_sets] = sets[units[i] - UNIT_SET];
                        unit[i] = (uint16_t)(UNIT_SET + n_sets++);
                }
        }
        return p;
}

Pattern *pattern_free(Pattern *p) {
        free(p);
        return NULL;
}

/* The text must have part->length bytes; a zero byte among them never matches. */
static bool part_match(const Pattern *p, const PatternPart *part, const uint8_t *text) {
        if (part->plain)
                return memcmp(text, p->bytes + part->begin, part->length) == 0;
        for (uint32_t i = 0; i < part->length; i++) {
                uint16_t unit = p->units[part->begin + i];

                if (unit < UNIT_STAR ? text[i] != unit
                    : unit == UNIT_ANY ? text[i] == 0
                                       : !pattern_set_has(&p->sets[unit - UNIT_SET], text[i]))
                        return false;
        }
        return true;
}

static const uint8_t *part_find(const Pattern *p, const PatternPart *part, const uint8_t *text, size_t size) {
        const uint8_t *wanted = p->bytes + part->begin, *end = text + size;

        if (part->plain && part->length > PATTERN_MAX_SEARCHED)
                return memmem(text, size, wanted, part->length);
        if (part->plain) { /* memmem() prepares itself for longer than this takes */
                for (; (size_t)(end - text) >= part->length; text++) {
                        text = memchr(text, *wanted, (size_t)(end - text) - part->length + 1);
                        if (!text || memcmp(text, wanted, part->length) == 0)
                                return text;
                }
                return NULL;
        }
        for (; size >= part->length; text++, size--)
                if (part_match(p, part, text))
                        return text;
        return NULL;
}

bool pattern_match(const Pattern *p, const uint8_t *text, size_t size) {
        const PatternPart *first = &p->parts[0], *last = &p->parts[p->n_parts - 1];
        const uint8_t *end;

        if (size < p->min_length || !part_match(p, first, text))
                return false;
        if (p->n_parts == 1)
                return size == first->length || text[first->length] == 0;
        if (p->n_parts == 2 && last->length == 0)
                return true;
        end = text + strnlen((const char *)text, size);
        if ((size_t)(end - text) < p->min_length)
                return false;
        end -= last->length;
        text += first->length;
        for (const PatternPart *part = first + 1; part < last; part++) {
                text = part_find(p, part, text, (size_t)(end - text));
                if (!text)
                        return false;
                text += part->length;
        }
        return part_match(p, last, end);
}
