/*
 * For --json: one document on one line. Strings are always valid UTF-8; a byte that is none is written as a character of its
 * own, \uef80 to \uefff, and so are the bytes of these characters themselves. What a terminal would obey (base/text.h) is
 * written as \uNNNN. Numbers are written with all their digits, also above 2^53.
 */
#pragma once

#include "client/perfctl/base/output.h"
#include "client/perfd.h"

typedef struct Json {
        Output *out;
        bool comma; /* before the next member */
} Json;

static inline Json json_of(Output *out) {
        return (Json){ .out = out };
}

/* Names of members are ours, or fields of tracepoints, and are escaped like any text. */
void json_put_name(Json *j, const char *name);
/* The same of a name that is a literal and needs no escapes: a member's beginning is copied as it is. */
void json_put_key(Json *j, const char *key, size_t n);
#define JSON_KEY(j, name) json_put_key((j), "\"" name "\":", sizeof("\"" name "\":") - 1)
/* A string, without a comma before it. */
void json_quote(Output *o, const char *bytes, size_t n);
/* An object or array, '{' '}' '[' ']'; as a member with json_put_name() before it. */
void json_begin(Json *j, char bracket);
void json_end(Json *j, char bracket);
/* The document is complete. */
void json_end_line(Json *j);

/* Values: of a member behind its name, or elements of an array. */
void json_put_string(Json *j, const char *string);
void json_put_text(Json *j, perfd_text text);
void json_put_number(Json *j, uint64_t number);
void json_put_signed(Json *j, int64_t number);
void json_put_digits(Json *j, const char *digits); /* an integer of any size */
void json_put_real(Json *j, double number); /* null if it is none */
void json_put_bool(Json *j, bool is);
void json_put_null(Json *j);
void json_put_hex(Json *j, uint64_t number);      /* "0x..." */
void json_put_hex_bytes(Json *j, perfd_text text); /* "00ff" */

#define JSON_STRING(j, name, value) (JSON_KEY((j), name), json_put_string((j), (value)))
#define JSON_NUMBER(j, name, value) (JSON_KEY((j), name), json_put_number((j), (value)))
#define JSON_NULL(j, name) (JSON_KEY((j), name), json_put_null((j)))
#define JSON_BOOL(j, name, value) (JSON_KEY((j), name), json_put_bool((j), (value)))
#define JSON_TEXT(j, name, value) (JSON_KEY((j), name), json_put_text((j), (value)))
