/* Names are arguments of perfctl, keys of YAML and words of messages, so they stay plain ASCII that needs no quotes. */
#include "config/text/name.h"

#include <stdbool.h>
#include <string.h>

#include "config/text/words.h"

int name_check(const char *what, const char *name, Explanation *e) {
        size_t length = strlen(name);

        if (length == 0 || length > NAME_LENGTH_MAX)
                return refuse(e, REFUSED_INVALID, "bad-name", "%s: found %s, expected a name of 1 to %d letters", what,
                              QUOTE(name), NAME_LENGTH_MAX);
        for (size_t i = 0; i < length; i++) {
                bool is_first_only = i == 0 && strchr("#-@", name[i]);

                if (name[i] > ' ' && name[i] < 0x7f && !strchr(",*?[]\"'\\", name[i]) && !is_first_only)
                        continue;
                (void)refuse(e, REFUSED_INVALID, "bad-name",
                             "%s: found %s, expected a name of ASCII letters, digits and signs such as . : _ - / "
                             "without spaces and any of ,*?[]\"'\\, not beginning with #, - or @",
                             what, QUOTE(name));
                if (e)
                        e->position = 1 + (unsigned)i;
                return REFUSED_INVALID;
        }
        return 0;
}
