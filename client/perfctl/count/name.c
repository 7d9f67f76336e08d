/* A name has to mean in --by what it means in --where. */
#include "client/perfctl/count/name.h"

#include <stdlib.h>
#include <string.h>

#include "client/perfctl/base/perfctl.h"
#include "client/perfctl/base/quantity.h"

static const char *const part_names[_KEY_PART_MAX] = {
        [KEY_COMM] = "comm", [KEY_PID] = "pid", [KEY_TID] = "tid", [KEY_CPU] = "cpu", [KEY_EVENT] = "event",
        [KEY_EXE] = "exe",   [KEY_UID] = "uid", [KEY_CGROUP] = "cgroup", [KEY_CONTAINER] = "container", [KEY_UNIT] = "unit",
        [KEY_IP] = "ip",     [KEY_ADDR] = "addr", [KEY_PERIOD] = "period",
};

const char *key_part_name(KeyPart part) {
        return part_names[part];
}

static KeyPart part_find(const char *name) {
        for (int i = 0; i < _KEY_PART_MAX; i++)
                if (strcmp(part_names[i], name) == 0)
                        return (KeyPart)i;
        return strcmp(name, "address") == 0 ? KEY_ADDR : KEY_NONE; /* as `watch` and JSON call it */
}

/* "[2]" to the end of the text. */
static bool parse_element(const char *text, int64_t *ret) {
        size_t n = strlen(text);
        uint64_t number;
        char digits[16];

        if (n < 3 || text[n - 1] != ']' || n - 2 >= sizeof(digits))
                return false;
        memcpy(digits, text + 1, n - 2);
        digits[n - 2] = '\0';
        if (!quantity_parse_number(digits, &number) || number > INT32_MAX)
                return false;
        *ret = (int64_t)number;
        return true;
}

bool key_name_init(KeyName *name, const char *text) {
        static const char prefix[] = "sample.";
        const char *bracket = strchr(text, '[');

        *name = (KeyName){ .text = text, .element = -1, .part = KEY_NONE };
        if (strncmp(text, prefix, strlen(prefix)) == 0) {
                name->part = part_find(text + strlen(prefix));
                return name->part != KEY_NONE;
        }
        if (!*text || (bracket && (bracket == text || !parse_element(bracket, &name->element))))
                return false;
        name->field = must_have(bracket ? strndup(text, (size_t)(bracket - text)) : strdup(text));
        name->part = part_find(text);
        return true;
}

void key_name_deinit(KeyName *name) {
        free(name->field);
        *name = (KeyName){ .text = NULL };
}
