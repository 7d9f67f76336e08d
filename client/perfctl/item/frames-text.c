/* Callchains as lines below that of their item, a frame on each. */
#include "client/perfctl/base/text.h"
#include "client/perfctl/item/chain-texts.h"
#include "client/perfctl/item/line.h"
#include "client/perfctl/item/parts.h"

static void put_offset(Output *o, uint64_t offset) {
        output_put(o, "+0x", 3);
        output_put_hex(o, offset);
}

/* "FUNCTION+0xPLACE [MODULE]": all but the innermost are where a call returns to, which may be behind the end of the function. */
static void put_frame_symbol(const ItemText *t, uint64_t address, bool returns) {
        perfd_symbol symbol;

        if (!kallsyms_find(t->symbols, address - returns, &symbol))
                return;
        output_put_char(t->out, t->is_padded ? ' ' : '\t');
        text_put_string(t->out, symbol.name);
        put_offset(t->out, address - symbol.address);
        if (*symbol.module) {
                output_put_string(t->out, " [");
                text_put_string(t->out, symbol.module);
                output_put_char(t->out, ']');
        }
}

/* "SOURCE:LINE" */
static void put_source_line(const ItemText *t, const FrameName *name) {
        if (name->file.length == 0)
                return;
        output_put_char(t->out, t->is_padded ? ' ' : '\t');
        text_put(t->out, name->file.bytes, name->file.length);
        output_put_char(t->out, ':');
        output_put_number(t->out, name->line);
}

/* "FUNCTION+0xPLACE (FILE)", or "FILE+0xPLACE" without a function; "FUNCTION (inlined)". */
static void put_frame_name(const ItemText *t, const NamedFrame *frame) {
        const FrameName *name = frame->name;
        const perfd_text file = name->dso;

        if (name->symbol.length == 0 && file.length == 0)
                return;
        output_put_char(t->out, t->is_padded ? ' ' : '\t');
        if (name->symbol.length == 0) {
                text_put(t->out, file.bytes, file.length);
                put_offset(t->out, frame->address);
                return;
        }
        text_put(t->out, name->symbol.bytes, name->symbol.length);
        if (frame->is_inlined)
                output_put_string(t->out, " (inlined)");
        else {
                put_offset(t->out, frame->offset);
                output_put(t->out, " (", 2);
                text_put(t->out, file.bytes, file.length);
                output_put_char(t->out, ')');
        }
        put_source_line(t, name);
}

#define FRAME_NAME_ROOM ((size_t)16) /* "kernel", "user" */

/* name: "" of all but the first one */
static void begin_frame(ItemText *t, const char *name, uint64_t address) {
        char digits[HEX_ROOM], *to;

        if (t->is_padded) {
                to = hex_put(digits, address);
                line_begin(t, name);
                padding_put(t->out, (size_t)(digits + HEX_ROOM - to));
                output_put(t->out, digits, (size_t)(to - digits));
                return;
        }
        to = output_begin(t->out, FRAME_NAME_ROOM + HEX_ROOM);
        *to++ = '\t';
        while (*name)
                *to++ = *name++;
        *to++ = '\t';
        output_end(t->out, hex_put(to, address));
}

/* A line for each function that was inlined there, and for the one that they are in. Gives the frame behind them. */
static const NamedFrame *put_named_frames(ItemText *t, const char *name, const NamedFrame *frame) {
        for (bool has_more = true; has_more; frame++, name = "") {
                begin_frame(t, name, frame->ip);
                put_frame_name(t, frame);
                output_put_char(t->out, '\n');
                has_more = frame->is_inlined;
        }
        return frame;
}

/* frames: from the one of its first address on, of a program to the last one; NULL: they have no names. Gives those that are left. */
static const NamedFrame *put_callchain(ItemText *t, const perfd_item *item, perfd_callchain part, const char *name, const NamedFrame *frames) {
        const uint64_t *addresses;
        size_t n = perfd_item_callchain(item, part, &addresses);

        for (size_t i = 0; frames ? frames < t->frames + t->n_frames && (part == PERFD_CALLCHAIN_USER || i < n) : i < n; i++, name = "") {
                if (frames) {
                        frames = put_named_frames(t, name, frames);
                        continue;
                }
                begin_frame(t, name, addresses[i]);
                if (part == PERFD_CALLCHAIN_KERNEL)
                        put_frame_symbol(t, addresses[i], i > 0);
                output_put_char(t->out, '\n');
        }
        return frames;
}

void frames_put_text(ItemText *t, const perfd_item *item) {
        const ChainBegin begin = chain_begin(t->out);

        if (t->has_no_calls || chain_texts_put(t->plans, t->out))
                return;
        (void)put_callchain(t, item, PERFD_CALLCHAIN_USER, "user", put_callchain(t, item, PERFD_CALLCHAIN_KERNEL, "kernel", t->frames));
        chain_texts_keep(t->plans, t->out, &begin);
}

void place_put_text(ItemText *t, const NamedFrame *frame) {
        const FrameName *name = frame->name;

        if (name->symbol.length > 0) {
                pair_begin(t, "symbol");
                text_put_value(t->out, name->symbol);
                put_offset(t->out, frame->offset);
        }
        if (name->dso.length == 0)
                return;
        pair_begin(t, "dso");
        text_put_value(t->out, name->dso);
        if (name->symbol.length == 0)
                put_offset(t->out, frame->address);
}
