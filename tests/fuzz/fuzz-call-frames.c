/*
 * Bytes as call frame information: whatever they say, reading ends, rules name registers that there are and expressions that lie in the
 * section, and what expressions compute reads nothing but the stack. One byte of flags, eight of the address, then the section; its end is
 * the stack, too.
 */
#include <stdlib.h>
#include <string.h>

#include "client/symbols/call-frames.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

#define MUST(x)                                                                                                        \
        do {                                                                                                           \
                if (!(x))                                                                                              \
                        abort();                                                                                       \
        } while (0)

#define HEAD ((size_t)9)
#define STACK_MAX ((size_t)256)
#define ENTRIES_MAX ((size_t)64) /* whose rules are looked at, in each of their places: more are more of the same */

static void evaluate(const FrameState *state, const FrameSection *section, const Rule *rule, const uint64_t *cfa) {
        uint64_t value;

        MUST(rule->number >= 0 && (uint64_t)rule->number <= section->n && rule->length <= section->n - (uint64_t)rule->number);
        if (frame_expression(state, section->bytes + rule->number, rule->length, cfa, &value))
                (void)frame_state_read(state, value, sizeof(value), &value);
}

static void check_rules(const FrameState *state, const FrameSection *section, const FrameRules *rules) {
        const uint64_t cfa = state->stack_at + 16;

        MUST(rules->section == section && rules->return_register < FRAME_REGISTERS);
        if (rules->cfa.kind == RULE_VALUE_EXPRESSION)
                evaluate(state, section, &rules->cfa, NULL);
        else
                MUST(rules->cfa.kind == RULE_REGISTER && rules->cfa.number >= 0 && rules->cfa.number < FRAME_REGISTERS);
        for (size_t i = 0; i < FRAME_REGISTERS; i++) {
                const Rule *rule = &rules->registers[i];

                MUST(rule->kind <= RULE_VALUE_EXPRESSION); /* a register that there is none of is for who reads it to refuse */
                if (rule->kind == RULE_EXPRESSION || rule->kind == RULE_VALUE_EXPRESSION)
                        evaluate(state, section, rule, &cfa);
        }
}

static void look(const FrameState *state, const FrameSection *section, uint64_t address) {
        FrameRules rules;

        if (frame_section_find(section, address, &rules))
                check_rules(state, section, &rules);
}

static void look_at_entries(const FrameState *state, const FrameSection *section) {
        for (size_t i = 0; i < section->n_entries; i++) {
                const FrameEntry *e = &section->entries[i];

                MUST(e->at < section->n && (i == 0 || section->entries[i - 1].start <= e->start));
                if (i >= ENTRIES_MAX)
                        continue;
                for (uint64_t at = 0; at < e->length && at < 64; at++)
                        look(state, section, e->start + at);
                look(state, section, e->start + e->length - 1);
                look(state, section, e->start + e->length);
        }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length) {
        FrameState state = { .known = UINT64_C(0x5555555555), .stack_at = 0x7ffe0000 };
        FrameSection section;
        uint64_t address;
        uint8_t *copy;

        if (length < HEAD)
                return 0;
        memcpy(&address, bytes + 1, sizeof(address));
        copy = malloc(length - HEAD + 1);
        MUST(copy);
        memcpy(copy, bytes + HEAD, length - HEAD);
        for (size_t i = 0; i < FRAME_REGISTERS; i++)
                state.registers[i] = state.stack_at + 8 * i;
        state.n_stack = length < STACK_MAX ? length : STACK_MAX;
        state.stack = bytes + length - state.n_stack;
        MUST(frame_section_init(&section, copy, length - HEAD, address, bytes[0] & 1) == 0);
        look_at_entries(&state, &section);
        look(&state, &section, address);
        look(&state, &section, UINT64_MAX);
        frame_section_deinit(&section);
        return 0;
}
