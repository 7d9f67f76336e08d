/*
 *     perfctl top: cpu-clock by symbol   4012/s   24072 samples in 6s   nothing lost
 *     filter: mall_                                            what was asked for, or a message
 *     SYMBOL                              SHARE  SAMPLES  TOTAL
 *     malloc [libc.so.6]                 12.00%      480   2800
 *     ...
 *     q quit  b by  s sort ...
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "client/perfctl/base/quantity.h"
#include "client/perfctl/base/text.h"
#include "client/perfctl/top/print.h"
#include "client/perfctl/top/screen.h"
#include "client/perfctl/top/top.h"

#define ABOVE 3    /* lines above the first row */
#define BELOW 1
#define RESTS_MAX 3 /* lines of a table that are no rows: what stands for rows that it does not have */
#define NSEC_PER_SEC UINT64_C(1000000000)

/* Lines are written here first: a table goes to an Output, and how large it is depends on the terminal. */
typedef struct Lines {
        Output out;
        char *bytes; /* malloc */
        size_t n;
} Lines;

static void lines_init(Lines *l) {
        output_init(&l->out, memfd_create("lines", MFD_CLOEXEC));
        l->bytes = NULL;
        l->n = 0;
}

/* All that was written to `out`. */
static void lines_read(Lines *l) {
        off_t size;
        ssize_t n = -1;

        output_flush(&l->out);
        size = lseek(l->out.fd, 0, SEEK_END);
        if (size >= 0) {
                l->bytes = must_have(malloc((size_t)size + 1));
                n = pread(l->out.fd, l->bytes, (size_t)size, 0);
        }
        l->n = n > 0 ? (size_t)n : 0;
        if (l->out.fd >= 0)
                (void)close(l->out.fd);
}

static void put_lines(Lines *l, size_t row, ScreenStyle first, ScreenStyle rest) {
        const char *at, *end;

        lines_read(l);
        for (at = l->bytes; at && at < l->bytes + l->n; at = end + 1) {
                end = memchr(at, '\n', (size_t)(l->bytes + l->n - at));
                if (!end)
                        end = l->bytes + l->n;
                screen_put_line(row++, at == l->bytes ? first : rest, at, (size_t)(end - at));
        }
        free(l->bytes);
}

/* ---- above the table ---------------------------------------------------------------------------------------------------------------- */

static void put_events(const Top *t, Output *o) {
        const EventWords *words = &t->loop.words;

        for (size_t i = 0; i < words->n && i < 3; i++) {
                const char *name = typed_names_find(&t->loop.typed, words->names[i]);

                output_put_string(o, i > 0 ? ", " : "");
                text_put_string(o, name);
        }
        if (words->n > 3)
                output_print(o, " and %zu more", words->n - 3);
        if (words->n == 0)
                output_put_string(o, "all events");
}

static void put_losses(const Top *t, Output *o) {
        const WatchLoss *loss = &t->loop.loss;

        if (loss->dropped == 0 && loss->ring == 0)
                output_put_string(o, "nothing lost");
        if (loss->dropped > 0)
                output_print(o, "%" PRIu64 " dropped", loss->dropped);
        if (loss->ring > 0)
                output_print(o, "%s%" PRIu64 " lost in rings", loss->dropped > 0 ? ", " : "", loss->ring);
}

static void put_status(const Top *t, Output *o, uint64_t now) {
        const uint64_t seconds = now > t->begun ? (now - t->begun) / NSEC_PER_SEC : 0, ns = t->window_length; /* zeroed behind `now`: 0 */
        const uint64_t n = t->has_rows ? t->rows.sum.window.n : 0;

        output_put_string(o, "perfctl top: ");
        put_events(t, o);
        output_put_string(o, " by ");
        for (size_t i = 0; i < t->subjects[t->keys.subject].n; i++) {
                output_put_string(o, i > 0 ? "," : "");
                text_put_string(o, t->subjects[t->keys.subject].words[i]);
        }
        output_print(o, "   %.0f/s   %" PRIu64 " sample%s in %" PRIu64 "s   ", ns > 0 ? (double)n * (double)NSEC_PER_SEC / (double)ns : 0,
                     t->has_rows ? t->rows.sum.total.n : 0, t->has_rows && t->rows.sum.total.n == 1 ? "" : "s", seconds);
        put_losses(t, o);
        output_put_string(o, t->keys.look.is_total ? "   since the start" : "");
        output_put_string(o, t->keys.look.order == TOP_ORDER_NAME ? "   sorted by name" : "");
        output_put_string(o, t->keys.is_paused ? "   PAUSED" : "");
}

/* A message stays until the next one. */
static void put_second(const Top *t, Output *o) {
        const char *message = screen_message();
        const TopLook *look = &t->keys.look;

        if (t->keys.is_typing || look->filter[0]) {
                output_put_string(o, "filter: ");
                text_put_string(o, look->filter);
                output_put_string(o, t->keys.is_typing ? "_" : "");
                output_print(o, "   %zu of %zu rows", t->rows.n, t->rows.n + t->rows.n_left_out);
        } else if (message)
                text_put_string(o, message);
}

/* ---- the table ------------------------------------------------------------------------------------------------------------------------ */

static void draw_table(Top *t, TerminalSize size) {
        static Lines lines;
        const size_t room = size.rows > ABOVE + BELOW ? size.rows - ABOVE - BELOW : 1;

        t->n_page = t->rows.n + RESTS_MAX <= room || room <= RESTS_MAX ? room : room - RESTS_MAX;
        top_keys_fit(&t->keys, t->rows.n, t->n_page);
        lines_init(&lines);
        top_put_table(&lines.out, &t->subjects[t->keys.subject], &t->keys.look, &t->rows, t->keys.first, t->n_page, true, size.columns);
        put_lines(&lines, ABOVE - 1, SCREEN_HEADING, SCREEN_PLAIN);
}

static void draw_help(void) {
        for (size_t i = 0; top_keys_help[i]; i++)
                screen_put_line(ABOVE + i, SCREEN_PLAIN, top_keys_help[i], strlen(top_keys_help[i]));
}

static void draw_line(const Top *t, size_t row, ScreenStyle style, void (*put)(const Top *t, Output *o)) {
        static Lines lines;

        lines_init(&lines);
        put(t, &lines.out);
        put_lines(&lines, row, style, style);
}

void top_draw(Top *t, uint64_t now) {
        static Lines lines;
        const TerminalSize size = screen_size();
        const bool has_lost = t->loop.loss.dropped > 0 || t->loop.loss.ring > 0;

        screen_begin();
        lines_init(&lines);
        put_status(t, &lines.out, now);
        put_lines(&lines, 0, has_lost ? SCREEN_WARNING : SCREEN_PLAIN, SCREEN_PLAIN);
        draw_line(t, 1, SCREEN_WARNING, put_second);
        if (t->keys.has_help)
                draw_help();
        else
                draw_table(t, size);
        if (size.rows > ABOVE + BELOW)
                screen_put_line(size.rows - 1, SCREEN_DIM, TOP_KEYS_LINE, strlen(TOP_KEYS_LINE));
        screen_end();
}
