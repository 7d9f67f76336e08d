#include "tests/bench/stream-printers.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void fail(const char *what) {
        fprintf(stderr, "bench-client: %s\n", what);
        exit(EXIT_FAILURE);
}

static void on_start(void *userdata, const perfd_start *start) {
        StreamPrinter *p = userdata;

        p->text.time.wall_offset = start->wall_offset;
        kallsyms_init(&p->symbols, start);
}

static void on_event(void *userdata, const perfd_event *event) {
        item_text_add_event(&((StreamPrinter *)userdata)->text, event->name);
}

static void on_item(void *userdata, const perfd_item *item) {
        StreamPrinter *p = userdata;

        if (p->form == PRINT_LINES)
                item_print_text(&p->text, item);
        else
                item_print_json(&p->out, &p->plans, item, perfd_item_time(item) + (uint64_t)p->text.time.wall_offset, false);
        p->n_items++;
}

static void print_all(StreamPrinter *p) {
        if (perfd_client_process(p->client) != 0)
                fail(perfd_client_error(p->client)->message);
        output_flush(&p->out);
        if (p->out.error)
                fail("an output");
}

/* The lines of a turn, and where each ends. */
static void take_lines(StreamPrinter *p, Feed *feed) {
        char path[] = "/tmp/bench-client-XXXXXX", *at;
        int fd = mkstemp(path), null = p->out.fd;
        off_t n;

        if (fd < 0)
                fail("a file");
        (void)unlink(path);
        feed_turn(feed);
        p->out.fd = fd;
        print_all(p);
        p->out.fd = null;
        n = lseek(fd, 0, SEEK_END);
        at = p->lines = malloc((size_t)n + 1);
        p->lengths = calloc(p->n_items + 1, sizeof(*p->lengths));
        if (n <= 0 || !p->lines || !p->lengths || pread(fd, p->lines, (size_t)n, 0) != n)
                fail("no lines");
        close(fd);
        p->lines[n] = '\0';
        if (p->form == PRINT_LINES) /* the heading */
                (void)memmove(at, strchr(at, '\n') + 1, strlen(strchr(at, '\n') + 1) + 1);
        for (uint64_t i = 0; i < p->n_items; i++, at += p->lengths[i - 1])
                p->lengths[i] = (size_t)(strchr(at, '\n') + 1 - at);
        if (*at)
                fail("more lines than items");
}

void stream_printer_init(StreamPrinter *p, PrinterForm form, bool is_bare, Feed *feed) {
        perfd_callbacks callbacks = PERFD_CALLBACKS_INIT;

        memset(p, 0, sizeof(*p));
        p->form = form;
        p->text.out = &p->out;
        p->text.symbols = &p->symbols;
        p->text.plans = &p->plans;
        p->plans.form = form == PRINT_JSON ? ITEM_FORM_JSON : ITEM_FORM_TEXT;
        output_init(&p->out, open("/dev/null", O_WRONLY | O_CLOEXEC));
        if (p->out.fd < 0)
                fail("/dev/null");
        callbacks.start = on_start;
        callbacks.event = on_event;
        callbacks.item = on_item;
        p->client = feed_subscribe(feed, &callbacks, p);
        if (is_bare)
                take_lines(p, feed);
}

void stream_printer_deinit(StreamPrinter *p) {
        if (!p->client)
                return;
        perfd_client_free(p->client);
        kallsyms_deinit(&p->symbols);
        item_plans_deinit(&p->plans);
        close(p->out.fd);
        free(p->lines);
        free(p->lengths);
}

static uint64_t print_bare(StreamPrinter *p) {
        const char *at = p->lines;

        for (uint64_t i = 0; i < p->n_items; at += p->lengths[i++])
                output_put(&p->out, at, p->lengths[i]);
        return p->n_items;
}

uint64_t stream_printer_print(StreamPrinter *p) {
        uint64_t before = p->n_items;

        if (p->lines)
                return print_bare(p);
        print_all(p);
        return p->n_items - before;
}
