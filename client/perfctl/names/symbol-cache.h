/* Where symbols of the running kernel are kept until the next boot: perfd/ in the user's folder of caches. */
#pragma once

#include <limits.h>

#include "client/perfd/symbolizer.h"

/* Not where that folder is another user's, as sudo may leave it. The path must live as long as the options do. */
void symbol_cache_set_options(perfd_symbolizer_options *options, char path[PATH_MAX]);
