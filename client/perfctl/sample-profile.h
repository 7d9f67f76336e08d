/* For flame and export: the samples of a source, added up by their stacks. */
#pragma once

#include "client/perfctl/sample-source.h"
#include "client/profile/profile.h"

typedef struct SampleProfile SampleProfile;

SampleProfile *sample_profile_new(Perfctl *p);
/* NULL. The profile goes, too. */
SampleProfile *sample_profile_free(SampleProfile *s);

/*
 * For SampleSource: userdata is the SampleProfile. The profile has the number of samples, and for each event, up to 7, how many of it they
 * stand for: ns of clocks, else a count. take() ends the source after a message, for which sample_profile_status() has a status.
 */
void sample_profile_add_event(void *userdata, const perfd_recorded_event *event);
bool sample_profile_take(void *userdata, const SourceSample *sample);

/* What it came to so far; it stays the SampleProfile's. NULL: there was no sample. */
const Profile *sample_profile_get(const SampleProfile *s);
int sample_profile_status(const SampleProfile *s);

/* "more distinct stacks than ..." for PROFILE_E_* and -errno. */
const char *sample_profile_error(int code);
