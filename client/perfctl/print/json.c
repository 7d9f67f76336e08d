/* A writer that knows nothing but where commas belong: whoever calls it knows the shape. */
#include "client/perfctl/print/json.h"

#include <math.h>

#include "client/perfctl/base/plain.h"
#include "client/perfctl/base/text.h"

static void json_put_comma(Json *j) {
        if (j->comma)
                output_put_char(j->out, ',');
        j->comma = true;
}

/* One unit of UTF-16, as JSON escapes them. */
static void put_unit(Output *o, uint32_t unit) {
        char bytes[2] = { (char)(unit >> 8), (char)unit };

        output_put(o, "\\u", 2);
        output_put_hex_bytes(o, bytes, sizeof(bytes));
}

/* What would change the terminal or the text around it, as JSON lets every character be written. */
static void put_character(Output *o, uint32_t c) {
        if (c == '\n')
                output_put(o, "\\n", 2);
        else if (c == '\t')
                output_put(o, "\\t", 2);
        else if (c < 0x10000)
                put_unit(o, c);
        else {
                put_unit(o, 0xd800 + ((c - 0x10000) >> 10));
                put_unit(o, 0xdc00 + ((c - 0x10000) & 0x3ff));
        }
}

/*
 * A byte that is no UTF-8 has no character, and JSON has nothing but characters. It becomes one of 128 of a private use
 * area; these themselves are written as their bytes, so that each text can be had back. Lone surrogates, which some take for
 * the same, are refused by some readers of JSON and lost by others.
 */
#define BYTE_FIRST 0xef80
#define BYTE_LAST 0xefff

static void put_bytes(Output *o, const char *at, size_t n) {
        for (size_t i = 0; i < n; i++)
                put_unit(o, BYTE_FIRST - 0x80 + (unsigned char)at[i]);
}

static void put_escaped(Output *o, const char *at, size_t n, size_t length) {
        uint32_t c = length > 0 ? utf8_character(at, length) : 0;

        if (length == 0)
                put_bytes(o, at, 1);
        else if (c >= BYTE_FIRST && c <= BYTE_LAST)
                put_bytes(o, at, length);
        else if (c == '"' || c == '\\') {
                output_put_char(o, '\\');
                output_put_char(o, *at);
        } else if (text_printable_length(at, n) > 0)
                output_put(o, at, length);
        else
                put_character(o, c);
}

static void put_with_escapes(Output *o, const char *bytes, size_t n) {
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
                put_escaped(o, bytes + i, n - i, length);
                i += length > 0 ? length : 1;
        }
}

void json_quote(Output *o, const char *bytes, size_t n) {
        output_put_char(o, '"');
        if (plain_is(bytes, n, PLAIN_JSON))
                output_put(o, bytes, n);
        else
                put_with_escapes(o, bytes, n);
        output_put_char(o, '"');
}

void json_put_key(Json *j, const char *key, size_t n) {
        json_put_comma(j);
        output_put(j->out, key, n);
        j->comma = false;
}

void json_put_name(Json *j, const char *name) {
        json_put_comma(j);
        json_quote(j->out, name, strlen(name));
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
        json_quote(j->out, text.bytes, text.length);
}

void json_put_string(Json *j, const char *string) {
        json_put_text(j, (perfd_text){ .bytes = string, .length = strlen(string) });
}

void json_put_number(Json *j, uint64_t number) {
        json_put_comma(j);
        output_put_number(j->out, number);
}

void json_put_digits(Json *j, const char *digits) {
        json_put_comma(j);
        output_put_string(j->out, digits);
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
