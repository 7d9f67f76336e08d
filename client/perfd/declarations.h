/* For the other headers: how their functions are declared, to C and to C++. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
#define PERFD_BEGIN_DECLARATIONS extern "C" { _Pragma("GCC visibility push(default)")
#define PERFD_END_DECLARATIONS _Pragma("GCC visibility pop") }
#else
#define PERFD_BEGIN_DECLARATIONS _Pragma("GCC visibility push(default)")
#define PERFD_END_DECLARATIONS _Pragma("GCC visibility pop")
#endif
