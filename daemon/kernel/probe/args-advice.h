/* For dynamic.c: what may stand instead of what the kernel has refused in fetch args. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* text: the kernel's own, n bytes. "" if perfd knows nothing better; else "; ...", to be put behind it. */
const char *probe_args_advice(const char *text, size_t n, bool is_kernel, bool is_return);
