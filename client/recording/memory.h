/* For this folder: records of processes and memory. */
#pragma once

#include "client/recording/reading.h"

/* It says of processes and memory what they are. */
bool record_is_state(uint32_t type);
