/* What is said of a value that its key cannot have: what was found, and what is expected. */
#include "config/value-refusal.h"

#include "config/text/words.h"

int refuse_value(const Key *k, const char *text, Explanation *e, const char *more) {
        return refuse(e, REFUSED_INVALID, "bad-value", "%s: found %s, expected %s%s", key_label(k), QUOTE(text),
                      k->range, more);
}

int refuse_value_at(const Key *k, const char *text, size_t offset, Explanation *e, const char *why) {
        int r = refuse(e, REFUSED_INVALID, "bad-value", "%s: found %s, %s; expected %s", key_label(k), QUOTE(text), why,
                       k->range);

        e->position = 1 + (unsigned)offset;
        return r;
}
