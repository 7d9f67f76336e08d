/* For conversion.c: %p and the letters behind it, as vsprintf.c of the kernel shows them. */
#pragma once

#include "client/perfd.h"
#include "client/print/arithmetic.h"
#include "client/render/render.h"

/*
 * letters: what is behind the 'p', with a length; the conversion's own length is how many of them belong to it. n: the argument of
 * a '*', for %*ph and %*pb; -1: there is none. False: it cannot be shown.
 */
bool print_pointer(Render *r, const char *letters, size_t n_letters, int64_t n, const PrintValue *v, const perfd_symbols *symbols);
