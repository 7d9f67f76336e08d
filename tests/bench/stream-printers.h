/* For bench-client: `perfctl watch` without its process: items of a stream become lines, which go to /dev/null. */
#pragma once

#include "client/perfctl/item/print.h"
#include "tests/bench/stream-feed.h"

typedef enum PrinterForm {
        PRINT_LINES, /* as for a pipe, by wall time */
        PRINT_JSON,
        _PRINTER_FORM_MAX,
} PrinterForm;

typedef struct StreamPrinter {
        PrinterForm form;
        perfd_client *client;
        Output out;
        ItemText text;
        Kallsyms symbols;
        ItemPlans plans;
        uint64_t n_items;
        size_t *lengths; /* of the lines of one turn, which `lines` has; for a bare writer of the same bytes */
        char *lines;
} StreamPrinter;

/* is_bare: the lines are made only once. Ends the program if something fails. */
void stream_printer_init(StreamPrinter *p, PrinterForm form, bool is_bare, Feed *feed);
void stream_printer_deinit(StreamPrinter *p);
/* Prints all that was sent; a bare one prints a turn, line by line. Gives how many lines that were. */
uint64_t stream_printer_print(StreamPrinter *p);
