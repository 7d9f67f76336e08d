/* For sample-source.c: samples of a live host, until it is told to end. */
#pragma once

#include "client/perfctl/samples/sample-source.h"

/* SampleSource.input is NULL. An exit status. */
int live_source_run(Perfctl *p, const SampleSource *s);
