/* A writer that knows nothing but where commas belong: whoever calls it knows the shape. */
#include "client/perfctl/json.h"

#include <math.h>

#include "client/perfctl/text.h"

static void json_put_comma(Json *j) {
        if (j->comma)
                output_put_char(j->out, ',');
        j->comma = true;
}

static void put_escaped(Output *o, const char *at, size_t length) {
        unsigned char c = (unsigned char)*at;

        if (length > 1)
                output_put(o, at, length);
        else if (c == '"' || c == '\\') {
                output_put_char(o, '\\');
                output_put_char(o, *at);
        } else if (c == '\n')
                output_put(o, "\\n", 2);
        else if (c == '\t')
                output_put(o, "\\t", 2);
        else {
                output_put(o, "\\u00", 4);
                output_put_hex_bytes(o, at, 1);
        }
}

static void put_quoted(Output *o, const char *bytes, size_t n) {
        output_put_char(o, '"');
        for (size_t i = 0; i < n;) {
                size_t plain = i, length;

                while (plain < n && bytes[plain] >= ' ' && bytes[plain] < 0x7f && bytes[plain] != '"' &&
                       bytes[plain] != '\\')
                        plain++;
                output_put(o, bytes + i, plain - i);
                i = plain;
                if (i == n)
                        break;
                length = utf8_length(bytes + i, n - i);
                put_escaped(o, bytes + i, length);
                i += length > 0 ? length : 1;
        }
        output_put_char(o, '"');
}

void json_put_name(Json *j, const char *name) {
        json_put_comma(j);
        put_quoted(j->out, name, strlen(name));
        output_put_char(j->out, ':');
        j->comma = false;
}

void json_begin(Json *j, char bracket) {
        json_put_comma(j);
        output_put_char(j->out, bracket);
        j->comma = false;
}

void json_end(Json *j, char bracket) {
        output_put_char(j->out, bracket);
        j->comma = true;
}

void json_end_line(Json *j) {
        output_put_char(j->out, '\n');
        j->comma = false;
}

void json_put_text(Json *j, perfd_text text) {
        json_put_comma(j);
        put_quoted(j->out, text.bytes, text.length);
}

void json_put_string(Json *j, const char *string) {
        json_put_text(j, (perfd_text){ .bytes = string, .length = strlen(string) });
}

void json_put_number(Json *j, uint64_t number) {
        json_put_comma(j);
        output_put_number(j->out, number);
}

void json_put_signed(Json *j, int64_t number) {
        json_put_comma(j);
        output_put_signed(j->out, number);
}

void json_put_real(Json *j, double number) {
        json_put_comma(j);
        if (isfinite(number))
                output_print(j->out, "%.15g", number);
        else
                output_put(j->out, "null", 4);
}

void json_put_bool(Json *j, bool is) {
        json_put_comma(j);
        output_put_string(j->out, is ? "true" : "false");
}

void json_put_null(Json *j) {
        json_put_comma(j);
        output_put(j->out, "null", 4);
}

void json_put_hex(Json *j, uint64_t number) {
        json_put_comma(j);
        output_put(j->out, "\"0x", 3);
        output_put_hex(j->out, number);
        output_put_char(j->out, '"');
}

void json_put_hex_bytes(Json *j, perfd_text text) {
        json_put_comma(j);
        output_put_char(j->out, '"');
        output_put_hex_bytes(j->out, text.bytes, text.length);
        output_put_char(j->out, '"');
}
