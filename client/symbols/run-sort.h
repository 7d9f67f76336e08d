/* For this folder alone: sorting of what is nearly sorted already, as the lists of kernels, linkers and compilers are. */
#pragma once

#include <stddef.h>

/* What is equal stays in its order. 0; -ENOMEM */
int run_sort(void *list, size_t n, size_t size, int (*compare)(const void *, const void *));
