/*
 * perf(1) and the daemon take the same registers of each architecture: all but the segments of x86-64, and the 33 of arm64. A mask is of the
 * event, and a recording says it before the first sample comes.
 */
#include "client/perfctl/recorder/user-stack.h"

#include <elf.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(__x86_64__)
#define REGISTERS UINT64_C(0xff0fff)
#define MACHINE EM_X86_64
#define MACHINE_NAME "x86_64"
#elif defined(__aarch64__)
#define REGISTERS ((UINT64_C(1) << 33) - 1)
#define MACHINE EM_AARCH64
#define MACHINE_NAME "aarch64"
#else
#define REGISTERS UINT64_C(0) /* the daemon refuses it */
#define MACHINE EM_NONE
#define MACHINE_NAME ""
#endif

#define STACK 8192                 /* bytes: the daemon's, unless more are asked for */
#define REST ((size_t)256)         /* bytes of a record: its header, numbers, sizes and what fills them up; less than that */
#define REGISTERS_MAX ((size_t)64)

/* ---- what was asked for ---------------------------------------------------------------------------------------------------------- */

/* Bits of a word of one kind; 0: there is none of that name. */
typedef uint64_t BitsOf(const char *word, size_t n);

static uint64_t bits_of_type(const char *word, size_t n) {
        static const struct {
                const char *word;
                uint64_t bit;
        } words[] = { { "regs-user", PERF_SAMPLE_REGS_USER }, { "stack-user", PERF_SAMPLE_STACK_USER }, { "addr", PERF_SAMPLE_ADDR },
                      { "ip", PERF_SAMPLE_IP } };

        for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
                if (strlen(words[i].word) == n && memcmp(words[i].word, word, n) == 0)
                        return words[i].bit;
        return 0;
}

/* "ax" is AX, and "xmm0" both halves, XMM0L and XMM0H. */
static uint64_t bits_of_register(const char *word, size_t n) {
        uint64_t bits = 0;

        for (unsigned bit = 0; bit < REGISTERS_MAX; bit++) {
                const char *name = perfd_register_name(MACHINE, bit);

                if (!name || strncasecmp(name, word, n) != 0)
                        continue;
                if (name[n] == '\0' || (strncmp(name, "XMM", 3) == 0 && (strcmp(name + n, "L") == 0 || strcmp(name + n, "H") == 0)))
                        bits |= UINT64_C(1) << bit;
        }
        return bits;
}

/* Words or numbers, between '|' or ','. The daemon has taken them: what is not known here is not of the kind. */
static uint64_t read_bits(const char *text, BitsOf *bits_of) {
        uint64_t bits = 0;

        while (*text) {
                const size_t n = strcspn(text, "|, ");
                char *end;
                const uint64_t number = strtoull(text, &end, 0);

                bits |= n > 0 && end == text + n ? number : bits_of(text, n);
                text += n + (text[n] != '\0');
        }
        return bits;
}

/* What stands behind NAME=; NULL: nothing does. The last one counts. */
static const char *value_of(const perfd_event_spec *spec, const char *name) {
        const char *found = NULL;

        for (size_t i = 0; i < spec->n_attr; i++)
                if (strncmp(spec->attr[i], name, strlen(name)) == 0 && spec->attr[i][strlen(name)] == '=')
                        found = spec->attr[i] + strlen(name) + 1;
        return found;
}

/* What all samples of a recording have; the identifier is their id. */
static bool is_always_there(const char *word, size_t n) {
        static const char *const words[] = { "ip", "tid", "time", "id", "cpu", "period", "raw", "identifier", "callchain", "stream-id" };

        for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
                if (strlen(words[i]) == n && memcmp(words[i], word, n) == 0)
                        return true;
        return false;
}

bool user_stack_is_of(const char *machine) {
        return strcmp(machine, MACHINE_NAME) == 0;
}

bool user_stack_leaves_out(const perfd_event_spec *spec, char *ret, size_t size) {
        const char *type = value_of(spec, "sample-type");
        size_t used = 0;

        *ret = '\0';
        while (type && *type) {
                const size_t n = strcspn(type, "|, ");

                if (n > 0 && !is_always_there(type, n) && bits_of_type(type, n) == 0 && used + n + 3 < size)
                        used += (size_t)snprintf(ret + used, size - used, "%s%.*s", used > 0 ? ", " : "", (int)n, type);
                type += n + (type[n] != '\0');
        }
        return used > 0;
}

void user_stack_of_event(perfd_recorded_event *event, const perfd_event_spec *spec) {
        const uint64_t both = PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER;
        const bool is_unwound = spec->callchain & PERFD_CALLCHAIN_DWARF;
        const char *type = value_of(spec, "sample-type"), *registers = value_of(spec, "sample-regs-user"),
                   *stack = value_of(spec, "sample-stack-user");

        event->sample_type |= (is_unwound ? both : 0) | (type ? read_bits(type, bits_of_type) & (both | PERF_SAMPLE_ADDR | PERF_SAMPLE_IP) : 0);
        if (event->sample_type & PERF_SAMPLE_REGS_USER)
                event->sample_regs_user = registers ? read_bits(registers, bits_of_register) : is_unwound ? REGISTERS : 0;
        if (event->sample_type & PERF_SAMPLE_STACK_USER)
                event->sample_stack_user = stack ? (uint32_t)strtoul(stack, NULL, 0) : is_unwound ? STACK : 0;
}

/* ---- what came ------------------------------------------------------------------------------------------------------------------- */

void user_stack_of_item(const perfd_item *item, perfd_recorded_sample *sample) {
        const perfd_recorded_event *event = sample->id.event;
        const size_t taken = REST + (REGISTERS_MAX + sample->n_callchain) * sizeof(uint64_t) + sample->raw.length;
        const size_t room = taken < UINT16_MAX ? (UINT16_MAX - taken) / 8 * 8 : 0;
        const perfd_registers *registers;

        sample->registers_user = (perfd_recorded_registers){ .abi = 0 };
        sample->stack_user = (perfd_text){ .bytes = "" };
        if ((event->sample_type & (PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER)) == 0)
                return;
        registers = perfd_item_user_registers(item);
        if (registers && registers->mask == event->sample_regs_user)
                sample->registers_user = (perfd_recorded_registers){ .abi = registers->abi, .values = registers->values,
                                                                     .n = registers->n_values };
        sample->stack_user = perfd_item_user_stack(item);
        if (sample->stack_user.length > room)
                sample->stack_user.length = room;
}
