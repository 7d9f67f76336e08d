#include "client/nats/stream-answer.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define DEPTH_MAX 32 /* of objects and arrays; those of JetStream have about 5 */

/* A value of JSON: its first byte, and the one behind its last. begin == NULL: there is none. */
typedef struct Value {
        const char *begin, *end;
} Value;

/* ---- JSON --------------------------------------------------------------------------------------------------------- */

static const char *skip_blanks(const char *at, const char *end) {
        while (at < end && strchr(" \t\r\n", *at) && *at)
                at++;
        return at;
}

/* Behind the quote that ends it. NULL: there is none. */
static const char *skip_text(const char *at, const char *end) {
        for (at++; at < end && *at != '"'; at++)
                if (*at == '\\' && ++at == end)
                        return NULL;
        return at < end ? at + 1 : NULL;
}

/* Whether brackets are of the right kind is not looked at: a value that is looked at is looked at itself. NULL: it does not end. */
static const char *skip_value(const char *at, const char *end) {
        const char *begin = at;
        unsigned depth = 0;

        do {
                if (at == end)
                        return NULL;
                if (*at == '"') {
                        at = skip_text(at, end);
                        if (!at)
                                return NULL;
                        continue;
                }
                if (depth == 0 && strchr(",:]}", *at) && *at)
                        return NULL;
                if (*at == '{' || *at == '[') {
                        if (++depth > DEPTH_MAX)
                                return NULL;
                } else if (*at == '}' || *at == ']') {
                        depth--;
                } else if (depth == 0) { /* a number or a word */
                        while (at < end && (isalnum((unsigned char)*at) || strchr("+-.", *at)) && *at)
                                at++;
                        return at > begin ? at : NULL;
                }
                at++;
        } while (depth > 0);
        return at;
}

/* The member of this name. False: it is no object as far as it was looked at. */
static bool find_member(Value object, const char *name, Value *ret) {
        const char *end = object.end, *at = object.begin;
        size_t length = strlen(name);

        *ret = (Value){ NULL, NULL };
        if (!at || at == end || *at++ != '{')
                return false;
        at = skip_blanks(at, end);
        while (at < end && *at == '"') {
                const char *key = at + 1, *behind = skip_text(at, end);
                bool is_it;

                if (!behind)
                        return false;
                is_it = (size_t)(behind - 1 - key) == length && memcmp(key, name, length) == 0;
                at = skip_blanks(behind, end);
                if (at == end || *at != ':')
                        return false;
                at = skip_blanks(at + 1, end);
                behind = skip_value(at, end);
                if (!behind)
                        return false;
                if (is_it) {
                        *ret = (Value){ at, behind };
                        return true;
                }
                at = skip_blanks(behind, end);
                if (at < end && *at == ',')
                        at = skip_blanks(at + 1, end);
        }
        return at < end && *at == '}';
}

static Value member(Value object, const char *name) {
        Value v;

        return find_member(object, name, &v) ? v : (Value){ NULL, NULL };
}

static bool is_object(Value v) {
        return v.begin && *v.begin == '{';
}

static bool is_text(Value v, const char *text) {
        size_t n = strlen(text);

        return v.begin && (size_t)(v.end - v.begin) == n + 2 && *v.begin == '"' && memcmp(v.begin + 1, text, n) == 0;
}

static bool has_text(Value object, const char *name) {
        Value v = member(object, name);

        return v.begin && *v.begin == '"' && v.end - v.begin > 2;
}

static bool is_true(Value object, const char *name) {
        Value v = member(object, name);

        return v.begin && v.end - v.begin == 4 && memcmp(v.begin, "true", 4) == 0;
}

/* 0: there is none, or it is none of these. */
static int64_t number(Value object, const char *name) {
        Value v = member(object, name);
        int64_t n = 0;

        if (!v.begin)
                return 0;
        for (const char *at = v.begin; at < v.end; at++) {
                if (!isdigit((unsigned char)*at) || __builtin_mul_overflow(n, 10, &n) || __builtin_add_overflow(n, *at - '0', &n))
                        return 0;
        }
        return n;
}

static void take_printable(const char *at, const char *end, char *to, size_t size) {
        size_t n = 0;

        for (; at < end && n + 1 < size; at++)
                to[n++] = (char)(isprint((unsigned char)*at) ? *at : '?');
        to[n] = '\0';
}

const char *stream_answer_text(const char *text, char *to, size_t size) {
        take_printable(text, text + strlen(text), to, size);
        return to;
}

/* What is escaped stays so. */
static void take_text(Value v, char *to, size_t size) {
        bool is_text = v.begin && *v.begin == '"';

        take_printable(is_text ? v.begin + 1 : NULL, is_text ? v.end - 1 : NULL, to, size);
}

/* ---- answers ------------------------------------------------------------------------------------------------------ */

/* NULL, and whether it is an error, with its words. */
static const char *read_whole(const char *bytes, size_t n, Value *ret, StreamAnswer *a) {
        Value whole, error;

        *a = (StreamAnswer){ .is_error = false };
        if (n == 0)
                return "the answer is empty";
        if (n > STREAM_ANSWER_MAX)
                return "the answer is longer than any of JetStream";
        whole.begin = skip_blanks(bytes, bytes + n);
        whole.end = bytes + n;
        if (!find_member(whole, "error", &error))
                return "the answer is no JSON object";
        *ret = whole;
        if (!error.begin)
                return NULL;
        if (!is_object(error))
                return "the answer has an error that says nothing";
        a->is_error = true;
        a->code = (long)number(error, "err_code");
        take_text(member(error, "description"), a->description, sizeof(a->description));
        return a->code == 0 && !a->description[0] ? "the answer has an error that says nothing" : NULL;
}

const char *stream_answer_read(const char *bytes, size_t n, const char *stream, StreamAnswer *ret) {
        Value whole, config, state;
        const char *no = read_whole(bytes, n, &whole, ret);

        if (no || ret->is_error)
                return no;
        config = member(whole, "config");
        state = member(whole, "state");
        if (!is_object(config))
                return "the answer has no configuration of a stream";
        if (!is_text(member(config, "name"), stream))
                return "the answer is about a stream of another name, or of none";
        ret->discards_new = is_text(member(config, "discard"), "new");
        ret->is_unacknowledged = is_true(config, "no_ack");
        ret->is_sealed = is_true(config, "sealed");
        ret->longest_message = number(config, "max_msg_size");
        ret->first = (uint64_t)number(state, "first_seq");
        ret->last = (uint64_t)number(state, "last_seq");
        ret->messages = (uint64_t)number(state, "messages");
        return NULL;
}

const char *message_answer_check(const char *bytes, size_t n) {
        StreamAnswer error;
        Value whole;
        const char *no = read_whole(bytes, n, &whole, &error);

        if (no || error.is_error)
                return no;
        return has_text(member(whole, "message"), "subject") ? NULL : "the answer has no message";
}

/* Nothing in it is escaped: it becomes a part of subjects. */
static bool take_name(Value v, char to[static NATS_NAME_SIZE]) {
        size_t n;

        if (!v.begin || *v.begin != '"' || v.end - v.begin <= 2)
                return false;
        n = (size_t)(v.end - v.begin) - 2;
        for (size_t i = 1; i <= n; i++)
                if (!isgraph((unsigned char)v.begin[i]) || strchr("\\.*>", v.begin[i]))
                        return false;
        if (n >= NATS_NAME_SIZE)
                return false;
        memcpy(to, v.begin + 1, n);
        to[n] = '\0';
        return true;
}

const char *consumer_answer_read(const char *bytes, size_t n, ConsumerAnswer *ret) {
        StreamAnswer error;
        Value whole, config;
        const char *no = read_whole(bytes, n, &whole, &error);

        *ret = (ConsumerAnswer){ .is_error = error.is_error, .code = error.code };
        memcpy(ret->description, error.description, sizeof(ret->description));
        if (no || error.is_error)
                return no;
        if (!take_name(member(whole, "name"), ret->name) || !has_text(whole, "stream_name"))
                return "the answer names no consumer";
        config = member(whole, "config");
        ret->pending = (uint64_t)number(whole, "num_pending");
        ret->delivered = (uint64_t)number(member(whole, "delivered"), "consumer_seq");
        ret->last = (uint64_t)number(member(whole, "delivered"), "stream_seq");
        ret->floor = (uint64_t)number(member(whole, "ack_floor"), "stream_seq");
        ret->pushes = has_text(config, "deliver_subject");
        ret->acknowledges_all = is_text(member(config, "ack_policy"), "all");
        take_text(member(config, "filter_subject"), ret->filter, sizeof(ret->filter));
        return NULL;
}
