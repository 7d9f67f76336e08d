/* Forms that have sums of stacks, and not each sample. */
#include "client/perfctl/export/export.h"
#include "client/perfctl/samples/off-cpu-profile.h"
#include "client/perfctl/print/output-file.h"
#include "client/profile/folded.h"
#include "client/profile/pprof.h"
#include "client/profile/speedscope.h"

typedef int (*WriteProfile)(FILE *out, const Profile *p, const char *title);

/* Of one event what it counts, of several the samples: these forms have one number for each stack. */
static size_t value_of(const Profile *p) {
        return p->n_values == 2 ? 1 : 0;
}

static int write_folded(FILE *out, const Profile *p, const char *title) {
        (void)title;
        return folded_write(out, p, value_of(p));
}

static int write_pprof(FILE *out, const Profile *p, const char *title) {
        (void)title;
        return pprof_write(out, p);
}

static int write_speedscope(FILE *out, const Profile *p, const char *title) {
        return speedscope_write(out, p, value_of(p), title);
}

static int export_profile(Perfctl *p, SampleSource source, FILE *out, bool *ret_is_whole, WriteProfile write) {
        const bool is_off_cpu = perfctl_get(p, "off-cpu");
        SampleProfile *s = is_off_cpu ? sample_profile_new(p, OFF_CPU_VALUE, "nanoseconds") : sample_profile_new(p, "samples", "count");
        int code;

        if (write == write_pprof)
                sample_profile_call_by_thread(s);
        code = is_off_cpu ? off_cpu_profile_run(p, s, source) : sample_profile_run(s, source);

        if (sample_profile_get(s) && !sample_profile_has_failed(s)) {
                const int r = output_file_check(out, write(out, sample_profile_get(s), source.input ? source.input : p->host ? p->host : "live"));

                if (r != 0)
                        code = perfctl_fail(p, PERFCTL_FAILED, "%s", sample_profile_error(r));
                else
                        *ret_is_whole = true;
        }
        sample_profile_free(s);
        return code;
}

int export_folded(Perfctl *p, SampleSource source, FILE *out, bool *ret_is_whole) {
        return export_profile(p, source, out, ret_is_whole, write_folded);
}

int export_pprof(Perfctl *p, SampleSource source, FILE *out, bool *ret_is_whole) {
        return export_profile(p, source, out, ret_is_whole, write_pprof);
}

int export_speedscope(Perfctl *p, SampleSource source, FILE *out, bool *ret_is_whole) {
        return export_profile(p, source, out, ret_is_whole, write_speedscope);
}
