/* Letters are those of other tops where these agree: q, h and ? of top(1), z of perf-top(1), p and / of htop(1). */
#include "client/perfctl/top/keys.h"

#include <string.h>

#include "client/perfctl/top/screen.h"

const char *const top_keys_help[] = {
        "q          quit; so do Ctrl-C and SIGTERM",
        "b, B       what rows are of: the next, the one before; counting starts at zero",
        "t          shares and the order of all since the start, or of the last window",
        "s          sort: by samples, by name",
        "/          filter: only rows that have this text; Enter keeps it, Esc drops it",
        "p, space   pause: the table stays, and counting goes on",
        "z          zero: forget what was counted",
        "up, down, page up, page down, home, end    scroll",
        "h, ?       this help, until the next key",
        NULL,
};

static TopAction type(TopKeys *k, int key) {
        char *filter = k->look.filter;
        size_t n = strlen(filter);

        if (key == SCREEN_ENTER || key == SCREEN_ESCAPE) {
                k->is_typing = false;
                if (key == SCREEN_ESCAPE)
                        filter[0] = '\0';
        } else if (key == SCREEN_BACKSPACE && n > 0) {
                char byte;

                do { /* up to the first byte of a character of UTF-8 */
                        byte = filter[--n];
                        filter[n] = '\0';
                } while (n > 0 && (byte & 0xc0) == 0x80);
        } else if (key >= ' ' && key < 256 && n < TOP_FILTER_MAX) {
                filter[n] = (char)key;
                filter[n + 1] = '\0';
        } else
                return TOP_NOTHING;
        k->first = 0;
        return TOP_LOOK;
}

void top_keys_fit(TopKeys *k, size_t n_rows, size_t n_page) {
        const size_t last = n_rows > n_page ? n_rows - n_page : 0;

        k->first = k->first < last ? k->first : last;
}

static TopAction scroll(TopKeys *k, int key, size_t n_rows, size_t n_page) {
        const size_t before = k->first;

        if (key == SCREEN_HOME)
                k->first = 0;
        else if (key == SCREEN_END)
                k->first = n_rows;
        else if (key == SCREEN_UP || key == SCREEN_PAGE_UP) {
                const size_t step = key == SCREEN_UP ? 1 : n_page;

                k->first -= step < k->first ? step : k->first;
        } else
                k->first += key == SCREEN_DOWN ? 1 : n_page;
        top_keys_fit(k, n_rows, n_page);
        return k->first != before ? TOP_DRAW : TOP_NOTHING;
}

static TopAction choose(TopKeys *k, size_t step) {
        k->subject = (k->subject + step) % k->n_subjects;
        k->first = 0;
        k->is_paused = false;
        return TOP_SUBJECT;
}

static TopAction command(TopKeys *k, int key) {
        switch (key) {
        case 'q':
                return TOP_QUIT;
        case 'b':
                return choose(k, 1);
        case 'B':
                return choose(k, k->n_subjects - 1);
        case 't':
                k->look.is_total = !k->look.is_total;
                return TOP_LOOK;
        case 's':
                k->look.order = (k->look.order + 1) % _TOP_ORDER_MAX;
                return TOP_LOOK;
        case '/':
                k->is_typing = true;
                k->look.filter[0] = '\0';
                return TOP_LOOK;
        case 'p':
        case ' ':
                k->is_paused = !k->is_paused;
                return TOP_DRAW;
        case 'z':
                k->first = 0;
                k->is_paused = false;
                return TOP_ZERO;
        case 'h':
        case '?':
                k->has_help = true;
                return TOP_DRAW;
        default:
                return TOP_NOTHING;
        }
}

TopAction top_keys_take(TopKeys *k, int key, size_t n_rows, size_t n_page) {
        if (k->has_help && key != 'q') {
                k->has_help = false;
                return TOP_DRAW;
        }
        if (k->is_typing)
                return type(k, key);
        if (key >= SCREEN_UP && key <= SCREEN_END)
                return scroll(k, key, n_rows, n_page);
        return command(k, key);
}
