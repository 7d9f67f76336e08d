/* Times are compared first: that takes no names. */
#include "client/perfctl/samples/choice.h"

#include <stdlib.h>
#include <string.h>

#include "client/perfctl/names/recorded-host.h"

#define NSEC_PER_SEC UINT64_C(1000000000)
#define FRACTION_DIGITS 9

const char *const sample_choice_targets[] = { "pid", "tid", "cpu", NULL };

/* "36082.916664906", "36082": ns. */
static bool parse_seconds(const char *text, size_t n, uint64_t *ret) {
        uint64_t whole = 0, fraction = 0;
        size_t i = 0, n_digits = 0;

        for (; i < n && text[i] >= '0' && text[i] <= '9'; i++)
                if (__builtin_mul_overflow(whole, UINT64_C(10), &whole) || __builtin_add_overflow(whole, (uint64_t)(text[i] - '0'), &whole))
                        return false;
        if (i == 0 || (i < n && text[i] != '.'))
                return false;
        for (i += i < n; i < n; i++, n_digits++) {
                if (text[i] < '0' || text[i] > '9' || n_digits == FRACTION_DIGITS)
                        return false;
                fraction = 10 * fraction + (uint64_t)(text[i] - '0');
        }
        for (; n_digits < FRACTION_DIGITS; n_digits++)
                fraction *= 10;
        return !__builtin_mul_overflow(whole, NSEC_PER_SEC, &whole) && !__builtin_add_overflow(whole, fraction, ret);
}

/* "10%": a number as strtod(3) has it, from 0 to 100. Gives what is behind it; NULL: it is none. */
static const char *parse_percent(const char *text, double *ret) {
        char *end;

        if (*text < '0' || *text > '9')
                return NULL;
        *ret = strtod(text, &end);
        return *end == '%' && *ret <= 100 ? end + 1 : NULL;
}

/* "10%-20%" of the time from the first sample to the last. */
static int parse_percents(const Perfctl *p, SampleChoice *c, const char *text) {
        const char *at = parse_percent(text, &c->first_percent);

        at = at && *at == '-' ? parse_percent(at + 1, &c->last_percent) : NULL;
        if (!at || *at || c->last_percent == 0 || c->first_percent > c->last_percent)
                return perfctl_fail(p, PERFCTL_USAGE, "--time: '%s' is no part of a recording, as 10%%-20%%, from its first sample, 0%%, to its last, 100%%",
                                    text);
        return 0;
}

int sample_choice_begin(SampleChoice *c, const Perfctl *p, perfd_recording *r, const char *path) {
        uint64_t first, last;

        if (c->last_percent == 0)
                return 0;
        if (!recorded_times(r, &first, &last))
                return perfctl_fail(p, PERFCTL_FAILED, "%s: it does not say when its first and its last sample were (SAMPLE_TIME): give --time in seconds",
                                    path);
        c->first = first + (uint64_t)((double)(last - first) * c->first_percent / 100);
        c->last = c->last_percent >= 100 ? last : first + (uint64_t)((double)(last - first) * c->last_percent / 100);
        return 0;
}

/* Either side may be empty. */
static int parse_time(const Perfctl *p, SampleChoice *c) {
        const char *text = perfctl_get(p, "time"), *comma;

        if (!text)
                return 0;
        if (strchr(text, '%'))
                return parse_percents(p, c, text);
        comma = strchr(text, ',');
        if (!comma || strcmp(text, ",") == 0 || (comma > text && !parse_seconds(text, (size_t)(comma - text), &c->first)) ||
            (comma[1] && !parse_seconds(comma + 1, strlen(comma + 1), &c->last)))
                return perfctl_fail(p, PERFCTL_USAGE, "--time: '%s' is not FROM,TO in seconds, as in 36082.9,36083.25; one of them may be missing, as in "
                                    "36082.9,; nor a part of all, as in 10%%-20%%", text);
        if (c->first > c->last)
                return perfctl_fail(p, PERFCTL_USAGE, "--time: '%s' ends before it begins", text);
        return 0;
}

static int parse_filters(const Perfctl *p, Filters *f) {
        static const char *const names[] = { "comm", "pid", "tid", "cpu" };
        int r = filters_add_options(p, f, names, sizeof(names) / sizeof(*names));

        if (r == 0 && f->has_frames)
                r = perfctl_fail(p, PERFCTL_USAGE, "--only: dso and symbol are of frames, of which a sample has many: `report` chooses rows by them");
        return r;
}

static int refuse_live(const Perfctl *p) {
        static const char *const options[] = { "comm", "time" };

        for (size_t i = 0; i < sizeof(options) / sizeof(*options); i++)
                if (perfctl_get(p, options[i]))
                        return perfctl_fail(p, PERFCTL_USAGE, "--%s chooses among samples of a recording: it needs --input", options[i]);
        return perfctl_get_values(p, "only")->n > 0 ?
                       perfctl_fail(p, PERFCTL_USAGE, "--only chooses among samples of a recording: it needs --input") : 0;
}

int sample_choice_init(SampleChoice *c, const Perfctl *p, bool has_filters) {
        int r;

        *c = (SampleChoice){ .last = UINT64_MAX };
        text_ids_init(&c->texts);
        r = parse_time(p, c);
        if (r == 0 && has_filters)
                r = p->verb->is_offline || perfctl_get(p, "input") ? parse_filters(p, &c->filters) : refuse_live(p);
        else if (r == 0 && perfctl_get(p, "time") && !perfctl_get(p, "input"))
                r = perfctl_fail(p, PERFCTL_USAGE, "--time chooses among samples of a recording: it needs --input");
        return r;
}

void sample_choice_deinit(SampleChoice *c) {
        filters_deinit(&c->filters);
        text_ids_deinit(&c->texts);
}

int sample_choice_check_off_cpu(const SampleChoice *c, const Perfctl *p) {
        return c->filters.n == 0 ? 0 : perfctl_fail(p, PERFCTL_USAGE, "--off-cpu needs the switches of all threads: of what chooses samples it takes "
                                                    "--time alone");
}

bool sample_choice_takes(SampleChoice *c, const perfd_item *item, const char *event) {
        const uint64_t time = perfd_item_time(item);

        return time >= c->first && time <= c->last && filters_take_sample(&c->filters, &c->texts, item, event);
}
