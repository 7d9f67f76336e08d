/*
 * The table of messages says which fields are texts, so that one which is added to perfd.proto later is checked too. Bytes
 * (values of external samples) may be anything: they go nowhere but into samples.
 */
#include "daemon/control/control.h"

#include <string.h>

#include "config/text/text.h"
#include "config/text/words.h"
#include "daemon/base/cleanup.h"

/* All others are one line. */
static bool is_folded(const ProtobufCFieldDescriptor *f) {
        static const char *const names[] = { "where", "filter", "args" };

        for (size_t i = 0; i < ARRAY_SIZE(names); i++)
                if (strcmp(f->name, names[i]) == 0)
                        return true;
        return false;
}

/* Configurations are read by config/, which says more of what is wrong with them, and where. */
static bool is_configuration(const ProtobufCFieldDescriptor *f) {
        return strcmp(f->name, "yaml") == 0;
}

static int text_check(const ProtobufCFieldDescriptor *f, const char *text, Explanation *e) {
        const char *why;
        size_t offset;

        if (!text || is_configuration(f))
                return 0;
        why = text_error(text, is_folded(f) ? TEXT_LINES : TEXT_LINE, &offset);
        if (why)
                (void)refuse(e, REFUSED_INVALID, "bad-text", "%s: found %s, %s", f->name, QUOTE(text), why);
        else if (!is_folded(f) && strnlen(text, TEXT_MAX + 1) > TEXT_MAX) {
                (void)refuse(e, REFUSED_INVALID, "bad-text", "%s: found %s, which is longer than %d bytes", f->name, QUOTE(text),
                             TEXT_MAX);
                offset = TEXT_MAX;
        } else
                return 0;
        e->position = 1 + (unsigned)offset;
        return REFUSED_INVALID;
}

static int message_check(const ProtobufCMessage *m, Explanation *e);

static int value_check(const ProtobufCFieldDescriptor *f, const void *value, Explanation *e) {
        if (f->type == PROTOBUF_C_TYPE_STRING)
                return text_check(f, *(const char *const *)value, e);
        if (f->type == PROTOBUF_C_TYPE_MESSAGE && *(const ProtobufCMessage *const *)value)
                return message_check(*(const ProtobufCMessage *const *)value, e);
        return 0;
}

/* As deep as perfd.proto nests messages, which no request can change. */
static int message_check(const ProtobufCMessage *m, Explanation *e) {
        int r = 0;

        for (unsigned i = 0; i < m->descriptor->n_fields && r == 0; i++) {
                const ProtobufCFieldDescriptor *f = &m->descriptor->fields[i];
                const void *value = (const char *)m + f->offset, *quantifier = (const char *)m + f->quantifier_offset;

                if (f->type != PROTOBUF_C_TYPE_STRING && f->type != PROTOBUF_C_TYPE_MESSAGE)
                        continue;
                if (f->label == PROTOBUF_C_LABEL_REPEATED) {
                        const void *const *items = *(const void *const *const *)value;
                        size_t n = *(const size_t *)quantifier;

                        for (size_t k = 0; k < n && r == 0; k++)
                                r = value_check(f, &items[k], e);
                } else if (!(f->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) || *(const uint32_t *)quantifier == f->id)
                        r = value_check(f, value, e);
        }
        return r;
}

int request_check_texts(const Perfd__V1__Request *request, Explanation *e) {
        /* the name of a sample's event is looked for first: there are too many of them to look twice */
        if (request->body_case == PERFD__V1__REQUEST__BODY_EMIT)
                return 0;
        return message_check(&request->base, e);
}

int request_check_sample_texts(const Perfd__V1__ExternalSample *sample, Explanation *e) {
        return message_check(&sample->base, e);
}
