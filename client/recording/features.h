/* For this folder and recorded/: sections of features. */
#pragma once

#include "client/recording/reading.h"

/* The bytes of one. 0; PERFD_E_INVALID: it has none; -ENOMEM, -errno */
int feature_get(perfd_recording *r, unsigned bit, Bytes *ret);
