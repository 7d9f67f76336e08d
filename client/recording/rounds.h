/* For this folder: whether the rounds of a recording keep what they promise. */
#pragma once

#include "client/recording/reading.h"

/* What a second reading of the same bytes tells: whether no order has to change anything, and whether the records
 * behind each FINISHED_ROUND keep what it promises. 0; -ENOMEM, -errno */
int rounds_check(const perfd_recording *r, bool *ret_is_sorted, bool *ret_keep);
