/* A client names what it likes, a million times if it likes: what the log says of it has a length of its own. */
#include "daemon/supervisor/operations/notes.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "daemon/base/log.h"

void notes_add_gone(Notes *notes, const char *event, uint32_t pid, size_t n) {
        if (notes->n_gone > 0 && strncmp(notes->gone_of, event, sizeof(notes->gone_of) - 1) != 0) {
                notes->n_gone_elsewhere++;
                return;
        }
        if (notes->n_gone == 0) {
                (void)snprintf(notes->gone_of, sizeof(notes->gone_of), "%s", event);
                notes->gone = pid;
        }
        notes->n_gone = n > notes->n_gone ? n : notes->n_gone; /* an event is looked at several times */
}

void notes_add_duplicates(Notes *notes, uint32_t id, size_t n) {
        if (notes->n_duplicates == 0)
                notes->duplicate = id;
        notes->n_duplicates += n;
}

void notes_add_nested(Notes *notes, const char *event, size_t n) {
        if (notes->n_nested == 0)
                (void)snprintf(notes->nested_in, sizeof(notes->nested_in), "%s", event);
        notes->n_nested += n;
}

void notes_add_left_out(Notes *notes, const char *why) {
        if (notes->n_left_out++ == 0)
                (void)snprintf(notes->left_out, sizeof(notes->left_out), "%s", why);
}

void notes_add_unchecked(Notes *notes, const char *event) {
        if (notes->n_unchecked++ == 0)
                (void)snprintf(notes->unchecked, sizeof(notes->unchecked), "%s", event);
}

/* What vsnprintf() says, cut: a line of the log has an end too. */
static void add(char *line, size_t size, const char *format, ...) __attribute__((format(printf, 3, 4)));
static void add(char *line, size_t size, const char *format, ...) {
        size_t used = strlen(line);
        va_list ap;

        va_start(ap, format);
        (void)vsnprintf(line + used, size - used, format, ap);
        va_end(ap);
}

void notes_say(Notes *notes, const char *who) {
        const Notes n = *notes;
        char line[900] = "";

        if (n.n_gone > 0)
                add(line, sizeof(line), "; %s: there is no process %u (any more)", n.gone_of, n.gone);
        if (n.n_gone > 1)
                add(line, sizeof(line), ", and %zu more of its pids do not exist either", n.n_gone - 1);
        if (n.n_gone_elsewhere > 0)
                add(line, sizeof(line), ", and other events also name processes that do not exist");
        if (n.n_duplicates > 0)
                add(line, sizeof(line), "; %zu pids or tids are named twice, the first is %u: ignored", n.n_duplicates,
                    n.duplicate);
        if (n.n_nested > 0)
                add(line, sizeof(line), "; %zu cgroups, of %s%s, are named twice or are inside another one: counted "
                        "once", n.n_nested,
                    n.nested_in, n.n_nested > 1 ? " first" : "");
        if (n.n_left_out > 1)
                add(line, sizeof(line), "; %zu events are skipped, the first because %s", n.n_left_out, n.left_out);
        else if (n.n_left_out > 0)
                add(line, sizeof(line), "; left out: %s", n.left_out);
        if (n.n_unchecked > 0)
                add(line, sizeof(line), "; %s%s: perfd cannot check that an instruction begins there", n.unchecked,
                    n.n_unchecked > 1 ? ", and others" : "");
        if (*line)
                log_print(LOG_NOTICE, MESSAGE_NOTE, "%s: %s", who, line + 2);
        notes_forget(notes);
}

void notes_forget(Notes *notes) {
        *notes = (Notes){ .n_gone = 0 };
}
