/* For --off-cpu of flame and export: the context switches of a source, as the time that threads did not run. */
#pragma once

#include "client/perfctl/samples/sample-profile.h"

#define OFF_CPU_VALUE "off-cpu"

/* As sample_profile_run(), of a SampleProfile whose value is OFF_CPU_VALUE in nanoseconds. */
int off_cpu_profile_run(Perfctl *p, SampleProfile *s, SampleSource source);
