/* Lines begin with the name of their host. Those of an item wait until it can be merged with the other hosts'. */
#include "client/perfctl/host-output.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/perfctl/daemon-clock.h"
#include "client/perfctl/host-item.h"
#include "client/perfctl/json.h"
#include "client/perfctl/text.h"

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
                h->n_items += h->is_in_item;
                h->is_in_item = false;
        } else if (h->is_in_item)
                lines_add(&h->item, line, n);
        else if (!is_heading_again(s, h))
                host_queue_add(queue, 0, 0, now, line, n);
}

static void take_line(Hosts *s, Host *h, int which, const char *line, size_t n) {
        if (which == PIPE_OUT) {
                take_output(s, h, line, n);
                return;
        }
        output_flush(&s->p->out);
        if (n > 1)
                fprintf(stderr, "%s: ", h->name);
        (void)fwrite(line, 1, n, stderr);
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
