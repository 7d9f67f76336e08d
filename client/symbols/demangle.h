/* For this folder alone: names of C++ and Rust as their programmers wrote them. */
#pragma once

#include <stdbool.h>

/* Allocated; of C++ with the types of parameters or without. NULL: it is no mangled name, or would be longer than any that a compiler writes, or there is no memory. */
char *demangle(const char *name, bool has_parameters);
