/* For values: a field of an item as the print format of its event shows it. */
#pragma once

#include "client/perfd.h"
#include "client/print/format.h"
#include "client/render/render.h"

/* False: it does not show this field, or not of this item; then *r is as it was. */
bool print_field(const PrintFormat *f, const perfd_item *item, size_t i, const perfd_symbols *symbols, Render *r);
