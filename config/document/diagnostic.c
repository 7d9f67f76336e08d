/*
 * Adding an error cannot fail for its caller: who finds errors goes on to find more, and the lack of memory is
 * remembered for the end. Parts find them in their own order (syntax, values, references), finish() in the file's.
 */
#include "config/document/diagnostic.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>

#include "daemon/base/array.h"
#include "daemon/base/cleanup.h"
#include "daemon/base/error-trail.h"
#include "daemon/base/printable.h"

static void diagnostics_add(ConfigDiagnostics *m, ConfigPlace at, bool warning, const char *reason, const char *format,
                            va_list ap) {
        _cleanup_free_ char *raw = NULL, *text = NULL, *path = NULL;

        if (config_diagnostics_is_full(m) || (warning && m->n_items - m->n_errors >= CONFIG_WARNINGS_MAX)) {
                m->n_left_out++;
                m->n_errors += !warning;
                return;
        }
        path = printable_copy(at.path);
        if (vasprintf(&raw, format, ap) < 0)
                raw = NULL;
        text = raw ? printable_copy(raw) : NULL;
        if (!path || !text || !ARRAY_ROOM(m->items, m->n_items)) {
                m->failure = error_origin(-ENOMEM);
                return;
        }
        m->items[m->n_items] = (ConfigDiagnostic){ .path = TAKE_PTR(path), .text = TAKE_PTR(text), .line = at.line,
                                                .column = at.column, .warning = warning, .reason = reason, .file = at.file,
                                                .order = (unsigned)m->n_items };
        m->n_items++;
        m->n_errors += !warning;
}

void config_diagnostics_add(ConfigDiagnostics *m, ConfigPlace at, const char *format, ...) {
        va_list ap;

        va_start(ap, format);
        diagnostics_add(m, at, false, NULL, format, ap);
        va_end(ap);
}

void config_diagnostics_add_warning(ConfigDiagnostics *m, ConfigPlace at, const char *format, ...) {
        va_list ap;

        va_start(ap, format);
        diagnostics_add(m, at, true, NULL, format, ap);
        va_end(ap);
}

__attribute__((format(printf, 4, 5)))
static void add_pending(ConfigDiagnostics *m, ConfigPlace at, const char *reason, const char *format, ...) {
        va_list ap;

        va_start(ap, format);
        diagnostics_add(m, at, true, reason, format, ap);
        va_end(ap);
}

void config_diagnostics_add_pending(ConfigDiagnostics *m, ConfigPlace at, const char *reason, const char *text) {
        add_pending(m, at, reason, "%s", text);
}

ConfigPlace config_place_later(ConfigPlace a, ConfigPlace b) {
        if (!a.path || !b.path)
                return a.path ? a : b;
        if (a.file != b.file)
                return a.file > b.file ? a : b;
        if (a.line != b.line)
                return a.line > b.line ? a : b;
        return a.column > b.column ? a : b;
}

static int diagnostic_order(const void *left, const void *right) {
        const ConfigDiagnostic *a = left, *b = right;

        if (a->file != b->file)
                return a->file < b->file ? -1 : 1;
        if (a->line != b->line)
                return a->line < b->line ? -1 : 1;
        if (a->column != b->column)
                return a->column < b->column ? -1 : 1;
        return a->order < b->order ? -1 : 1;
}

/* An alias makes the same text be read twice. */
static bool diagnostic_is_same(const ConfigDiagnostic *a, const ConfigDiagnostic *b) {
        return a->file == b->file && a->line == b->line && a->column == b->column && strcmp(a->text, b->text) == 0;
}

static void diagnostic_deinit(ConfigDiagnostic *diagnostic) {
        free(diagnostic->path);
        free(diagnostic->text);
}

int config_diagnostics_finish(ConfigDiagnostics *m) {
        size_t to = 0;

        if (m->n_items > 1)
                qsort(m->items, m->n_items, sizeof(*m->items), diagnostic_order);
        for (size_t i = 0; i < m->n_items; i++) {
                if (to > 0 && diagnostic_is_same(&m->items[to - 1], &m->items[i])) {
                        m->n_errors -= !m->items[i].warning;
                        diagnostic_deinit(&m->items[i]);
                } else {
                        m->items[to++] = m->items[i];
                }
        }
        m->n_items = to;
        if (m->n_left_out > 0 && to > 0) {
                ConfigDiagnostic *last = &m->items[to - 1];
                char *text = NULL;

                if (asprintf(&text, "%s (and %zu more errors that are not shown)", last->text, m->n_left_out) < 0)
                        return error_origin(-ENOMEM);
                free(last->text);
                last->text = text;
        }
        return m->failure;
}

void config_diagnostics_deinit(ConfigDiagnostics *m) {
        for (size_t i = 0; i < m->n_items; i++)
                diagnostic_deinit(&m->items[i]);
        free(m->items);
        *m = CONFIG_DIAGNOSTICS_NULL;
}

static const char *kind_text(const ConfigDiagnostic *diagnostic) {
        if (!diagnostic->warning)
                return "";
        return diagnostic->reason ? "note: " : "warning: ";
}

#define PLACE_SIZE sizeof(":4294967295:4294967295")

/* "" of the file as a whole. */
static char *place_text(const ConfigDiagnostic *diagnostic, char buffer[static PLACE_SIZE]) {
        buffer[0] = '\0';
        if (diagnostic->line > 0)
                (void)snprintf(buffer, PLACE_SIZE, ":%u:%u", diagnostic->line, diagnostic->column);
        return buffer;
}

size_t config_diagnostic_text(const ConfigDiagnostic *diagnostic, char *to, size_t size) {
        char place[PLACE_SIZE];

        return (size_t)snprintf(to, size, "%s%s: %s%s", diagnostic->path, place_text(diagnostic, place),
                                kind_text(diagnostic), diagnostic->text);
}

void config_diagnostic_print(const ConfigDiagnostic *diagnostic, FILE *to) {
        char place[PLACE_SIZE];

        fprintf(to, "%s%s: %s%s\n", diagnostic->path, place_text(diagnostic, place), kind_text(diagnostic), diagnostic->text);
}
