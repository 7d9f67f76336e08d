/* Lines begin with the name of their host. Those of an item wait until it can be merged with the other hosts'. */
#include "client/perfctl/hosts/output.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/perfctl/base/daemon-clock.h"
#include "client/perfctl/hosts/item.h"
#include "client/perfctl/print/json.h"
#include "client/perfctl/base/quantity.h"
#include "client/perfctl/base/text.h"

static void lines_add(Lines *l, const char *bytes, size_t n) {
        if (n > l->room - l->n) {
                l->room = 2 * (l->n + n);
                l->bytes = must_have(realloc(l->bytes, l->room));
        }
        memcpy(l->bytes + l->n, bytes, n);
        l->n += n;
}

/* One line with its end, of which the first byte of JSON's is a bracket. */
static void put_line(Hosts *s, const Host *h, const char *line, size_t n, bool is_item, bool is_certain) {
        const char *name = s->form == HOSTS_MERGED && !s->p->json && !is_item ? "HOST" : h->name;
        Output *o = &s->p->out;

        if (s->p->json && *line == '{') {
                output_put_string(o, "{\"host\":");
                json_quote(o, h->name, strlen(h->name));
                if (is_item)
                        output_put_string(o, is_certain ? ",\"order_certain\":true" : ",\"order_certain\":false");
                output_put_char(o, ',');
                output_put(o, line + 1, n - 1);
                return;
        }
        text_put_string(o, name);
        if (s->p->human)
                output_print(o, "%*s", (int)(s->width - strlen(name)), "");
        output_put_string(o, s->p->human ? " " : "\t");
        if (s->form == HOSTS_MERGED)
                output_put_string(o, is_item && !is_certain ? "~" : s->p->human ? " " : "");
        if (s->form == HOSTS_MERGED && !s->p->human)
                output_put_char(o, '\t');
        output_put(o, line, n);
}

static void put_entry(Hosts *s, const Host *h, const HostEntry *e, bool is_certain) {
        for (const char *at = e->bytes, *end = e->bytes + e->n, *next; at < end; at = next) {
                const char *newline = memchr(at, '\n', (size_t)(end - at));

                next = newline ? newline + 1 : end;
                put_line(s, h, at, (size_t)(next - at), e->wall > 0, is_certain);
        }
}

/* A heading, which is the same for all. */
static bool is_heading_again(Hosts *s, const Host *h) {
        bool again = s->form == HOSTS_MERGED && !s->p->json && s->has_heading;

        s->has_heading = true;
        return again;
}

static void show_error(const Host *h, const char *line, size_t n) {
        if (n > 1)
                fprintf(stderr, "%s: ", h->name);
        (void)fwrite(line, 1, n, stderr);
}

void host_show_held(Hosts *s, Host *h) {
        Lines held = h->held;

        output_flush(&s->p->out);
        if (held.n != h->told.n || (held.n > 0 && memcmp(held.bytes, h->told.bytes, held.n) != 0))
                for (size_t at = 0, n; at < held.n; at += n) {
                        n = (size_t)((const char *)memchr(held.bytes + at, '\n', held.n - at) + 1 - (held.bytes + at));
                        show_error(h, held.bytes + at, n);
                }
        h->held = h->told;
        h->held.n = 0;
        h->told = held;
}

int host_tell(Hosts *s, const Host *h, int code, const char *format, ...) {
        char *text;
        va_list ap;

        va_start(ap, format);
        must_have(vasprintf(&text, format, ap) < 0 ? NULL : text);
        va_end(ap);
        output_flush(&s->p->out);
        fprintf(stderr, "%s: ", h->name);
        (void)perfctl_fail(s->p, code, "%s", text);
        free(text);
        return code;
}

/* It may have been away. Who waits for it does so from here on. */
static void begin_stream(Hosts *s, Host *h) {
        uint64_t now = clock_read(CLOCK_MONOTONIC);
        char away[QUANTITY_SIZE];

        h->began = now;
        if (!h->has_streamed)
                h->first_began = now;
        h->has_streamed = h->is_streaming = true;
        h->sum.has_end = false;
        s->queues[h - s->list].has_ended = false;
        if (!h->is_away)
                return;
        host_show_held(s, h);
        h->told.n = 0;
        h->is_away = false;
        h->again = 0;
        h->sum.away += now - h->lost;
        (void)host_tell(s, h, PERFCTL_OK, "connected again after %s; what happened there meanwhile is missing",
                        quantity_show_time(now - h->lost, away));
}

static bool is_word(const char *line, const char *word, const char **ret_rest) {
        size_t n = strlen(word);

        *ret_rest = line + n + 1;
        return strncmp(line, word, n) == 0 && line[n] == ' ';
}

/* Of the process itself: item.h. */
static void take_note(Hosts *s, Host *h, const char *line, size_t n) {
        char *text = must_have(strndup(line, n - 1));
        const char *rest;

        if (is_word(text, NOTE_START, &rest))
                begin_stream(s, h);
        else if (is_word(text, NOTE_WALL, &rest)) {
                uint64_t wall = strtoull(rest, NULL, 10);

                h->wall_last = wall > h->wall_last ? wall : h->wall_last;
        } else if (is_word(text, NOTE_END, &rest))
                host_sum_take_end(&h->sum, rest);
        else if (is_word(text, NOTE_SUM, &rest) && h->is_streaming)
                host_sum_take_sum(&h->sum, rest);
        else if (is_word(text, NOTE_PASSING, &rest)) {
                free(h->passing);
                h->passing = must_have(strdup(rest));
        }
        free(text);
}

/* A line of a host's stdout, with its end. */
static void take_output(Hosts *s, Host *h, const char *line, size_t n) {
        HostQueue *queue = &s->queues[h - s->list];
        uint64_t now = clock_read(CLOCK_MONOTONIC);

        if (s->is_hidden)
                return;
        if (*line == ITEM_BEGIN) {
                h->is_in_item = sscanf(line + 1, "%" SCNu64 " %" SCNu64, &h->wall, &h->error) == 2;
                h->item.n = 0;
        } else if (*line == ITEM_END) {
                if (h->is_in_item)
                        host_queue_add(queue, h->wall, h->error, now, h->item.bytes, h->item.n);
                h->wall_last = h->is_in_item && h->wall > h->wall_last ? h->wall : h->wall_last;
                h->is_in_item = false;
        } else if (*line == ITEM_NOTE)
                take_note(s, h, line + 1, n - 1);
        else if (h->is_in_item)
                lines_add(&h->item, line, n);
        else if (!is_heading_again(s, h))
                host_queue_add(queue, 0, 0, now, line, n);
}

static void take_line(Hosts *s, Host *h, int which, const char *line, size_t n) {
        if (which == PIPE_OUT) {
                take_output(s, h, line, n);
                return;
        }
        if (h->is_away) {
                lines_add(&h->held, line, n);
                return;
        }
        output_flush(&s->p->out);
        show_error(h, line, n);
}

void host_take_bytes(Hosts *s, Host *h, int which, const char *bytes, size_t n) {
        Lines *l = &h->lines[which];
        size_t at = 0;

        lines_add(l, bytes, n);
        for (const char *newline; (newline = memchr(l->bytes + at, '\n', l->n - at)); at = (size_t)(newline + 1 - l->bytes))
                take_line(s, h, which, l->bytes + at, (size_t)(newline + 1 - l->bytes) - at);
        l->n -= at;
        memmove(l->bytes, l->bytes + at, l->n);
}

/* One host behind the other: what the first one has printed when it has ended. */
static void give_in_turn(Hosts *s) {
        for (size_t i = 0; i < s->n; i++) {
                HostQueue *q = &s->queues[i];

                for (HostEntry *e; q->has_ended && (e = host_queue_take(q)); free(e))
                        put_entry(s, &s->list[i], e, true);
                if (!q->has_ended)
                        return;
        }
}

uint64_t hosts_give(Hosts *s) {
        uint64_t now = clock_read(CLOCK_MONOTONIC), wait;
        bool is_certain;
        HostEntry *e;
        size_t i;

        if (s->form == HOSTS_EACH) {
                give_in_turn(s);
                return UINT64_MAX;
        }
        for (; (e = host_merge_next(s->queues, s->n, s->hold, now, &i, &is_certain, &wait)); free(e))
                put_entry(s, &s->list[i], e, is_certain);
        return wait;
}

void host_deinit(Host *h) {
        for (int which = 0; which < PIPES; which++)
                free(h->lines[which].bytes);
        free(h->item.bytes);
        free(h->held.bytes);
        free(h->told.bytes);
        free(h->passing);
        free(h->gap.why);
        host_sum_deinit(&h->sum);
}
