/*
 * What Linux would refuse with a bare EINVAL, or silently not do, by the names of the fields that contradict each
 * other. Settings are compared as they were written, because fields that share their bytes can't be told apart later.
 */
#include <linux/hw_breakpoint.h>
#include <stddef.h>
#include <string.h>

#include "config/attr/attr-setting.h"
#include "daemon/base/cleanup.h"

#define STACK_MAX 65528 /* the largest multiple of 8 that perf_copy_attr() takes */

#define refuse_attr(e, ...) refuse((e), REFUSED_INVALID, "bad-attr", __VA_ARGS__)

static bool is_named(const AttrSetting *s, const char *name) {
        return strcmp(attr_field_name(s->field), name) == 0;
}

int attr_settings_check(const AttrSetting *settings, size_t n, const char *what, Explanation *e) {
        static const struct {
                const char *one, *other, *why;
        } shared[] = {
                { "wakeup-events", "wakeup-watermark", "the reader is woken after a number of samples or of bytes" },
                { "bp-addr", "config1", "an event is a breakpoint or of a PMU" },
                { "bp-len", "config2", "an event is a breakpoint or of a PMU" },
                { "bp-type", "config1", "an event is a breakpoint or of a PMU" },
                { "bp-type", "config2", "an event is a breakpoint or of a PMU" },
        };

        for (size_t i = 0; i < n; i++)
                for (size_t k = i + 1; k < n; k++) {
                        const AttrSetting *a = &settings[i], *b = &settings[k];

                        if (a->field == b->field)
                                return refuse_attr(e, "%s: attr %s is set twice", what, attr_field_name(a->field));
                        for (size_t s = 0; s < ARRAY_SIZE(shared); s++)
                                if ((is_named(a, shared[s].one) && is_named(b, shared[s].other)) ||
                                    (is_named(b, shared[s].one) && is_named(a, shared[s].other)))
                                        return refuse_attr(e, "%s: attr %s and %s exclude each other: %s", what,
                                                           shared[s].one, shared[s].other, shared[s].why);
                }
        return 0;
}

/* Fields that mean something only together with a bit of sample-type, which means nothing without them. */
static int check_pairs(const struct perf_event_attr *attr, const char *what, Explanation *e) {
        const struct {
                uint64_t bit, value;
                const char *word, *field;
        } pairs[] = {
                { PERF_SAMPLE_REGS_USER, attr->sample_regs_user, "regs-user", "sample-regs-user" },
                { PERF_SAMPLE_REGS_INTR, attr->sample_regs_intr, "regs-intr", "sample-regs-intr" },
                { PERF_SAMPLE_STACK_USER, attr->sample_stack_user, "stack-user", "sample-stack-user" },
                { PERF_SAMPLE_BRANCH_STACK, attr->branch_sample_type, "branch-stack", "branch-sample-type" },
                { PERF_SAMPLE_AUX, attr->aux_sample_size, "aux", "aux-sample-size" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(pairs); i++) {
                bool has_bit = attr->sample_type & pairs[i].bit;

                if (has_bit && pairs[i].value == 0)
                        return refuse_attr(e, "%s: attr sample-type has %s, but %s is not set", what, pairs[i].word,
                                           pairs[i].field);
                if (!has_bit && pairs[i].value != 0)
                        return refuse_attr(e, "%s: attr %s is set, but sample-type has no %s", what, pairs[i].field,
                                           pairs[i].word);
        }
        if (attr->sample_max_stack != 0 && !(attr->sample_type & PERF_SAMPLE_CALLCHAIN))
                return refuse_attr(e, "%s: attr sample-max-stack is set, but there is no callchain", what);
        return 0;
}

static int check_samples(const struct perf_event_attr *attr, const char *what, Explanation *e) {
        const uint64_t weights = PERF_SAMPLE_WEIGHT | PERF_SAMPLE_WEIGHT_STRUCT;

        if ((attr->sample_type & weights) == weights)
                return refuse_attr(e, "%s: attr sample-type has weight and weight-struct, which exclude each other", what);
        if (attr->sample_stack_user % 8 != 0 || attr->sample_stack_user > STACK_MAX)
                return refuse_attr(e, "%s: attr sample-stack-user is %u, expected a multiple of 8 up to %d", what,
                                   attr->sample_stack_user, STACK_MAX);
        if (attr->branch_sample_type != 0 && !(attr->branch_sample_type & ~(uint64_t)PERF_SAMPLE_BRANCH_PLM_ALL))
                return refuse_attr(e, "%s: attr branch-sample-type selects user, kernel or hv, but no branches, such as any", what);
        if (!attr->freq && attr->sample_period >> 63)
                return refuse_attr(e, "%s: period %llu is above 2^63 - 1", what,
                                   (unsigned long long)attr->sample_period);
        return 0;
}

static int check_places(const struct perf_event_attr *attr, const char *what, Explanation *e) {
        if (attr->exclude_user && attr->exclude_kernel && attr->exclude_hv)
                return refuse_attr(e, "%s: attr exclude-user, exclude-kernel and exclude-hv leave nothing to count", what);
        if (attr->exclude_host && attr->exclude_guest)
                return refuse_attr(e, "%s: attr exclude-host and exclude-guest leave nothing to count", what);
        if (attr->type == PERF_TYPE_BREAKPOINT && attr->bp_type == HW_BREAKPOINT_EMPTY)
                return refuse_attr(e, "%s: attr bp-type is 0: expected r, w, or x", what);
        if (attr->type == PERF_TYPE_BREAKPOINT && attr->bp_type & HW_BREAKPOINT_X && attr->bp_type & HW_BREAKPOINT_RW)
                return refuse_attr(e, "%s: attr bp-type combines x with r or w, which exclude each other", what);
        if (attr->type != PERF_TYPE_BREAKPOINT && attr->bp_type != HW_BREAKPOINT_EMPTY)
                return refuse_attr(e, "%s: attr bp-type is set, but the event is not a breakpoint (mem:ADDRESS)", what);
        if ((attr->type == PERF_TYPE_SOFTWARE || attr->type == PERF_TYPE_TRACEPOINT) && (attr->config1 || attr->config2))
                return refuse_attr(e, "%s: attr %s is set, but the event is not one of a PMU", what,
                                   attr->config1 ? "config1" : "config2");
        return 0;
}

static int check_tasks(const struct perf_event_attr *attr, const char *what, Explanation *e) {
        if (attr->enable_on_exec && attr->remove_on_exec)
                return refuse_attr(e, "%s: attr enable-on-exec and remove-on-exec exclude each other", what);
        if (attr->sigtrap && !attr->remove_on_exec)
                return refuse_attr(e, "%s: attr sigtrap needs remove-on-exec, because the signal is meant for one program", what);
        if (attr->sig_data && !attr->sigtrap)
                return refuse_attr(e, "%s: attr sig-data is set, but sigtrap is not", what);
        return 0;
}

int attr_check(const struct perf_event_attr *attr, const char *what, Explanation *e) {
        int r = check_pairs(attr, what, e);

        if (r == 0)
                r = check_samples(attr, what, e);
        if (r == 0)
                r = check_places(attr, what, e);
        return r == 0 ? check_tasks(attr, what, e) : r;
}

/* Byte by byte, so that a field which this file has never heard of counts too. */
uint32_t attr_least_size(const struct perf_event_attr *attr) {
        static const uint32_t sizes[] = { PERF_ATTR_SIZE_VER0, PERF_ATTR_SIZE_VER1, PERF_ATTR_SIZE_VER2,
                                          PERF_ATTR_SIZE_VER3, PERF_ATTR_SIZE_VER4, PERF_ATTR_SIZE_VER5,
                                          PERF_ATTR_SIZE_VER6, PERF_ATTR_SIZE_VER7, PERF_ATTR_SIZE_VER8 };
        const unsigned char *bytes = (const unsigned char *)attr;
        size_t used = sizeof(*attr), i = 0;

        while (used > PERF_ATTR_SIZE_VER0 && bytes[used - 1] == 0)
                used--;
        while (sizes[i] < used && i < ARRAY_SIZE(sizes) - 1)
                i++;
        return sizes[i];
}
