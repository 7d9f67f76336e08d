/* The file has an address once for each place in the kernel that made it known, so often more than once. */
#include "daemon/kernel/tracefs/printk-strings.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/error-trail.h"

/* The print format shows it as what it points to. A system call's are addresses of user space, and no format of it is used. */
static bool is_shown_as_string(const Plan *p, const PlanField *f) {
        size_t n = strlen(f->name);

        if (!p->print || !strstr(p->print, "%s"))
                return false;
        for (const char *at = p->print; (at = strstr(at, "REC->")); at++)
                if (strncmp(at + strlen("REC->"), f->name, n) == 0 && !isalnum((unsigned char)at[strlen("REC->") + n]) &&
                    at[strlen("REC->") + n] != '_')
                        return true;
        return false;
}

/* "const char * s", and no array of them. */
static bool is_string(const Plan *p, const PlanField *f) {
        static const char without_const[] = "char *";
        const char *type = f->type;

        if (strncmp(type, "const ", strlen("const ")) == 0)
                type += strlen("const ");
        return f->kind == FIELD_POINTER && f->count == 1 && strncmp(type, without_const, strlen(without_const)) == 0 &&
               type[strlen(without_const)] != '*' && is_shown_as_string(p, f);
}

bool printk_strings_are_wanted(const Plan *p) {
        for (size_t i = 0; i < p->n_fields; i++)
                if (is_string(p, &p->fields[i]))
                        return true;
        return false;
}

/* Between the quotes, of which those inside have a backslash, as have tabs, line breaks and backslashes: t_show() of trace_printk.c. */
static void unescape(char *text) {
        char *to = text;

        for (const char *at = text; *at; at++) {
                if (at[0] == '\\' && at[1])
                        at++, *to++ = (char)(*at == 'n' ? '\n' : *at == 't' ? '\t' : *at);
                else
                        *to++ = *at;
        }
        *to = '\0';
}

/* NULL, or no memory: *ret_error. */
static char *line_string(const char *line, size_t n, uint64_t *ret_address, int *ret_error) {
        static const char between[] = " : \"";
        char *end, *text;

        *ret_address = strtoull(line, &end, 16);
        if (end == line || strncmp(end, between, strlen(between)) != 0 || line[n - 1] != '"' ||
            end + strlen(between) > line + n - 1)
                return NULL;
        end += strlen(between);
        text = strndup(end, (size_t)(line + n - 1 - end));
        if (text)
                unescape(text);
        else
                *ret_error = error_origin(-ENOMEM);
        return text;
}

static bool has_value(const PlanField *f, uint64_t value) {
        for (size_t i = 0; i < f->n_values; i++)
                if (f->values[i].value == value)
                        return true;
        return false;
}

int printk_strings_add(Plan *p, const char *text) {
        int r = 0;

        for (size_t n; *text && r == 0; text += n + (text[n] == '\n')) {
                _cleanup_free_ char *string = NULL;
                uint64_t address;

                n = strcspn(text, "\n");
                string = n > 0 ? line_string(text, n, &address, &r) : NULL;
                for (size_t i = 0; string && r == 0 && i < p->n_fields; i++)
                        if (is_string(p, &p->fields[i]) && !has_value(&p->fields[i], address))
                                r = plan_field_add_value(&p->fields[i], address, string);
        }
        return r;
}
