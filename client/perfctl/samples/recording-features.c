/* Two visitors of the same tree. */
#include "client/perfctl/samples/recording-features.h"

#include <string.h>

#include "client/perfctl/base/text.h"

#define N_FEATURES 256
#define INDENT 2 /* columns */

/* ---- JSON ------------------------------------------------------------------------------------------------------------------ */

static void json_key(Json *j, const char *key) {
        if (key)
                json_put_name(j, key);
}

static void json_object_begin(void *userdata, const char *key) {
        json_key(userdata, key);
        json_begin(userdata, '{');
}

static void json_object_end(void *userdata) {
        json_end(userdata, '}');
}

static void json_list_begin(void *userdata, const char *key) {
        json_key(userdata, key);
        json_begin(userdata, '[');
}

static void json_list_end(void *userdata) {
        json_end(userdata, ']');
}

static void json_text(void *userdata, const char *key, perfd_text text) {
        json_key(userdata, key);
        json_put_text(userdata, text);
}

static void json_number(void *userdata, const char *key, uint64_t number) {
        json_key(userdata, key);
        json_put_number(userdata, number);
}

static void json_bytes(void *userdata, const char *key, perfd_text bytes) {
        json_key(userdata, key);
        json_put_hex_bytes(userdata, bytes);
}

static void json_flag(void *userdata, const char *key, bool is) {
        json_key(userdata, key);
        json_put_bool(userdata, is);
}

static const perfd_feature_visitor json_visitor = {
        .begin_object = json_object_begin,
        .end_object = json_object_end,
        .begin_list = json_list_begin,
        .end_list = json_list_end,
        .text = json_text,
        .number = json_number,
        .bytes = json_bytes,
        .flag = json_flag,
};

/* ---- text ------------------------------------------------------------------------------------------------------------------ */

typedef struct Lines {
        Output *out;
        unsigned depth;
        bool is_item; /* the next line begins a member of a list */
} Lines;

static void line_begin(Lines *l, const char *key) {
        for (unsigned i = 0; i < INDENT * l->depth; i++)
                output_put_char(l->out, l->is_item && i == INDENT * (l->depth - 1) ? '-' : ' ');
        l->is_item = false;
        if (key) {
                text_put_string(l->out, key);
                output_put_char(l->out, ':');
        }
}

/* Before a value in the line of its key. */
static void line_value(Lines *l, const char *key) {
        line_begin(l, key);
        if (key)
                output_put_char(l->out, ' ');
}

static void lines_begin(void *userdata, const char *key) {
        Lines *l = userdata;

        if (key) {
                line_begin(l, key);
                output_put_char(l->out, '\n');
        }
        l->depth++;
        l->is_item = !key;
}

static void lines_end(void *userdata) {
        Lines *l = userdata;

        l->depth--;
        l->is_item = false;
}

static void lines_text(void *userdata, const char *key, perfd_text text) {
        Lines *l = userdata;

        line_value(l, key);
        text_put(l->out, text.bytes, text.length);
        output_put_char(l->out, '\n');
}

static void lines_number(void *userdata, const char *key, uint64_t number) {
        Lines *l = userdata;

        line_value(l, key);
        output_put_number(l->out, number);
        output_put_char(l->out, '\n');
}

static void lines_bytes(void *userdata, const char *key, perfd_text bytes) {
        Lines *l = userdata;

        line_value(l, key);
        for (size_t i = 0; i < bytes.length; i++)
                output_put_hex_bytes(l->out, bytes.bytes + i, 1);
        output_put_char(l->out, '\n');
}

static void lines_flag(void *userdata, const char *key, bool is) {
        lines_text(userdata, key, is ? (perfd_text){ .bytes = "yes", .length = 3 } : (perfd_text){ .bytes = "no", .length = 2 });
}

static const perfd_feature_visitor lines_visitor = {
        .begin_object = lines_begin,
        .end_object = lines_end,
        .begin_list = lines_begin,
        .end_list = lines_end,
        .text = lines_text,
        .number = lines_number,
        .bytes = lines_bytes,
        .flag = lines_flag,
};

/* ---- all of them ----------------------------------------------------------------------------------------------------------- */

static int visit_all(perfd_recording *r, const perfd_feature_visitor *visitor, void *userdata) {
        for (unsigned bit = 0; bit < N_FEATURES; bit++) {
                int code = perfd_recording_has_feature(r, bit) ? perfd_recording_visit_feature(r, bit, visitor, userdata) : 0;

                if (code != 0)
                        return code;
        }
        return 0;
}

int features_put_json(Json *j, perfd_recording *r) {
        return visit_all(r, &json_visitor, j);
}

int features_put_text(Output *o, perfd_recording *r) {
        return visit_all(r, &lines_visitor, &(Lines){ .out = o, .depth = 1 });
}
