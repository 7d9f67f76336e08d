#include "client/perfctl/complete/complete.h"

#include <string.h>

#include "client/perfctl/base/text.h"

bool complete_offer(Perfctl *p, const char *word, const char *prefix, const char *candidate) {
        size_t n = strlen(prefix);

        if (strncmp(prefix, word, strlen(word) < n ? strlen(word) : n) != 0 ||
            (strlen(word) > n && strncmp(candidate, word + n, strlen(word) - n) != 0))
                return false;
        output_put_string(&p->out, prefix);
        text_put_string(&p->out, candidate);
        output_put_char(&p->out, '\n');
        return true;
}
