/* For verbs that name what is in a recording: where it was made. */
#pragma once

#include "client/perfctl/perfctl.h"

/*
 * Whether what it says of its host, as far as it has been read, is not said of this one: names of this one's processes and kernel are none of
 * its. False too if it says nothing.
 */
bool recorded_host_is_another(perfd_recording *r);
