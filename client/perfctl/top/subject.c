/*
 * What `count --by` means is meant here too: the same names, the same keys. Before those stand, where they are asked for, the address of the
 * FrameName, which is the same for the same function of the same file, and the path of the file; as in count/key.h all at multiples of 8.
 */
#include "client/perfctl/top/subject.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/perfctl/item/print.h"
#include "client/perfctl/print/list-text.h"

static const char function_word[] = "symbol", file_word[] = "dso";

/* What stands before the bytes of the Keys. */
typedef struct Frame {
        const FrameName *name; /* NULL: not known */
        perfd_text path;
} Frame;

static int parse_word(Subject *s, const Perfctl *p, const char *word) {
        if (strcmp(word, function_word) == 0)
                s->has_function = true;
        else if (strcmp(word, file_word) == 0)
                s->has_file = true;
        else if (!key_name_init(&s->columns[s->n_columns], word))
                return perfctl_fail(p, PERFCTL_USAGE, "--by: '%s' is not a field, nor an element of one, as args[2], nor any of "
                                    SUBJECT_WORDS, word);
        else
                s->n_columns++;
        return 0;
}

int subject_init(Subject *s, const Perfctl *p, const char *text) {
        int r = 0;

        *s = (Subject){ .n = 0 };
        s->words = list_split(text, &s->n);
        s->columns = must_have(calloc(s->n, sizeof(*s->columns)));
        s->cells = must_have(calloc(s->n, sizeof(*s->cells)));
        for (size_t i = 0; i < s->n && r == 0; i++) {
                for (size_t k = 0; k < i && r == 0; k++)
                        if (strcmp(s->words[k], s->words[i]) == 0)
                                r = perfctl_fail(p, PERFCTL_USAGE, "--by: '%s' was already given", s->words[i]);
                if (r == 0)
                        r = parse_word(s, p, s->words[i]);
        }
        keys_init(&s->keys, s->columns, s->n_columns, NULL, 0);
        return r;
}

void subject_deinit(Subject *s) {
        keys_deinit(&s->keys);
        for (size_t i = 0; s->columns && i < s->n; i++)
                key_name_deinit(&s->columns[i]);
        free(s->columns);
        free(s->cells);
        free(s->bytes);
        free((void *)s->words);
        *s = (Subject){ .words = NULL };
}

bool subject_has_frames(const Subject *s) {
        return s->has_function || s->has_file;
}

void subject_add_event(Subject *s, const perfd_event *event, const char *name) {
        keys_add_event(&s->keys, event, name);
}

/* ---- keys ------------------------------------------------------------------------------------------------------------------------- */

static uint8_t *reserve(Subject *s, size_t n) {
        uint8_t *at;

        if (s->room - s->n_bytes < n) {
                s->room = 2 * s->room + n;
                s->bytes = must_have(realloc(s->bytes, s->room));
        }
        at = s->bytes + s->n_bytes;
        s->n_bytes += n;
        return at;
}

static void put_path(Subject *s, perfd_text path) {
        const uint64_t length = path.length;
        const size_t padded = (path.length + 7) / 8 * 8;

        memcpy(reserve(s, sizeof(length)), &length, sizeof(length));
        if (padded == 0)
                return;
        memset(reserve(s, padded), 0, padded);
        memcpy(s->bytes + s->n_bytes - padded, path.bytes, path.length);
}

const uint8_t *subject_encode(Subject *s, const perfd_item *item, const FrameName *frame, size_t *ret_length) {
        s->n_bytes = 0;
        if (s->has_function)
                memcpy(reserve(s, sizeof(frame)), &frame, sizeof(frame));
        if (s->has_file)
                put_path(s, frame ? frame->dso : (perfd_text){ .length = 0 });
        keys_encode(&s->keys, item);
        memcpy(reserve(s, s->keys.n_bytes), s->keys.bytes, s->keys.n_bytes);
        *ret_length = s->n_bytes;
        return s->bytes;
}

static Frame decode(Subject *s, const uint8_t *key) {
        Frame f = { .name = NULL };
        uint64_t length;

        if (s->has_function) {
                memcpy(&f.name, key, sizeof(f.name));
                key += sizeof(f.name);
        }
        if (s->has_file) {
                memcpy(&length, key, sizeof(length));
                f.path = (perfd_text){ .bytes = (const char *)key + sizeof(length), .length = length };
                key += sizeof(length) + (length + 7) / 8 * 8;
        }
        keys_decode(&s->keys, key, s->cells);
        return f;
}

/* ---- what is shown ---------------------------------------------------------------------------------------------------------------- */

/* "malloc [libc.so.6]": whose it is tells one from another of the same name. */
static char *function_text(const FrameName *name) {
        const char *slash = name ? memrchr(name->dso.bytes, '/', name->dso.length) : NULL;
        const perfd_text unknown = { .bytes = "(unknown)", .length = strlen("(unknown)") };
        perfd_text symbol, file;
        bool is_bare;
        char *text;

        if (!name)
                return must_have(strdup("-"));
        symbol = name->symbol.length > 0 ? name->symbol : unknown;
        file = name->dso;
        if (slash) {
                file.length -= (size_t)(slash + 1 - file.bytes);
                file.bytes = slash + 1;
        }
        is_bare = file.length > 0 && *file.bytes != '[';
        must_have(asprintf(&text, "%.*s%s%s%.*s%s", (int)symbol.length, symbol.bytes, file.length > 0 ? " " : "", is_bare ? "[" : "",
                           (int)file.length, file.bytes, is_bare ? "]" : "") < 0 ? NULL : text);
        return text;
}

char **subject_cells(Subject *s, const uint8_t *key, Kallsyms *symbols) {
        char **texts = must_have(calloc(s->n, sizeof(*texts)));
        const Frame frame = decode(s, key);
        size_t column = 0;

        for (size_t i = 0; i < s->n; i++)
                if (strcmp(s->words[i], function_word) == 0)
                        texts[i] = function_text(frame.name);
                else if (strcmp(s->words[i], file_word) == 0)
                        texts[i] = must_have(frame.path.length > 0 ? strndup(frame.path.bytes, frame.path.length) : strdup("-"));
                else
                        texts[i] = count_cell_text(&s->cells[column++], symbols);
        return texts;
}

void subject_cells_free(const Subject *s, char **cells) {
        for (size_t i = 0; cells && i < s->n; i++)
                free(cells[i]);
        free(cells);
}

static void put_text_json(Json *j, const char *name, perfd_text text) {
        json_put_name(j, name);
        if (text.length > 0)
                json_put_text(j, text);
        else
                json_put_null(j);
}

/* A function's file is a member too. */
static void put_function_json(const Subject *s, Json *j, const FrameName *name) {
        put_text_json(j, function_word, name ? name->symbol : (perfd_text){ .length = 0 });
        if (!s->has_file)
                put_text_json(j, file_word, name ? name->dso : (perfd_text){ .length = 0 });
}

static bool has_names(const KeyCell *c) {
        return !c->is_absent && c->value.field->n_values > 0;
}

/* Of the words that are names of `count`. */
static void put_names_json(const Subject *s, Json *j) {
        JSON_KEY(j, "names");
        json_begin(j, '{');
        for (size_t i = 0; i < s->n_columns; i++)
                if (has_names(&s->cells[i])) {
                        json_put_name(j, s->columns[i].text);
                        value_put_names_json(j, &s->cells[i].value);
                }
        json_end(j, '}');
}

void subject_put_json(Subject *s, Json *j, const uint8_t *key) {
        const Frame frame = decode(s, key);
        size_t column = 0;
        bool any = false;

        JSON_KEY(j, "key");
        json_begin(j, '{');
        for (size_t i = 0; i < s->n; i++)
                if (strcmp(s->words[i], function_word) == 0)
                        put_function_json(s, j, frame.name);
                else if (strcmp(s->words[i], file_word) == 0)
                        put_text_json(j, file_word, frame.path);
                else {
                        json_put_name(j, s->words[i]);
                        any |= has_names(&s->cells[column]);
                        count_put_cell_json(j, &s->cells[column++]);
                }
        json_end(j, '}');
        if (any)
                put_names_json(s, j);
}
