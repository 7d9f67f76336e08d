/* For flame and export: the samples of a source, added up by their stacks. */
#pragma once

#include "client/perfctl/samples/sample-source.h"
#include "client/profile/profile.h"

typedef struct SampleProfile SampleProfile;

/* value, unit: of the first value, which a sample has 1 of; literals. */
SampleProfile *sample_profile_new(Perfctl *p, const char *value, const char *unit);
/* A sample without frames has one that is called as its thread is, for readers that show frames alone. */
void sample_profile_call_by_thread(SampleProfile *s);
/* NULL. The profile goes, too. */
SampleProfile *sample_profile_free(SampleProfile *s);

/*
 * Adds up all samples of a source, whose userdata and callbacks are set here: their number, and for each event, up to 7, how many of it they
 * stand for: ns of clocks, else a count. An exit status, after messages if it is not 0; of a recording that is damaged there is a profile
 * of what is whole nevertheless.
 */
int sample_profile_run(SampleProfile *s, SampleSource source);
/* What it came to so far; it stays the SampleProfile's. NULL: there was no sample. */
Profile *sample_profile_get(const SampleProfile *s);
/* It does not have all samples that were read: for that there was a message. */
bool sample_profile_has_failed(const SampleProfile *s);

/* ---- for other sums of the same stacks ------------------------------------------------------------------------------------------- */

/* Ids of its task, and of its frames, n_frames from the outermost to the innermost, with room for one more: until the next call. 0, PROFILE_E_*, -ENOMEM. */
int sample_profile_find(SampleProfile *s, const SourceSample *sample, uint32_t *ret_task, uint32_t **ret_frames);
/* False after a message, unless code is 0; the source is to end then, and sample_profile_end() fails. */
bool sample_profile_check(SampleProfile *s, int code);
/* The exit status of a source that ended with `code`, after a message if there was no sample. */
int sample_profile_end(SampleProfile *s, const char *input, int code);

/* "more distinct stacks than ..." for PROFILE_E_* and -errno. */
const char *sample_profile_error(int code);
