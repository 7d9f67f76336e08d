/* Callchains as lists of frames, or of addresses. */
#include "client/perfctl/item/chain-texts.h"
#include "client/perfctl/item/parts.h"

/* Where the address is in the source, or where an inlined function calls the one before it. */
static void put_source_line(Json *j, const NamedFrame *frame) {
        const FrameName *name = frame ? frame->name : NULL;

        if (name && name->file.length > 0)
                JSON_TEXT(j, "file", name->file);
        else
                JSON_NULL(j, "file");
        if (name && name->line > 0)
                JSON_NUMBER(j, "line", name->line);
        else
                JSON_NULL(j, "line");
        JSON_BOOL(j, "inlined", frame && frame->is_inlined);
}

/* Offset: from the symbol, or from the beginning of the file where there is none. What is not known is null; frame: NULL if nothing is. */
static void put_frame(Json *j, uint64_t address, const NamedFrame *frame, bool has_lines) {
        const FrameName *name = frame ? frame->name : NULL;

        json_begin(j, '{');
        JSON_KEY(j, "ip");
        json_put_hex(j, address);
        if (name && name->symbol.length > 0)
                JSON_TEXT(j, "symbol", name->symbol);
        else
                JSON_NULL(j, "symbol");
        if (frame && frame->is_inlined)
                JSON_NULL(j, "offset");
        else if (name && name->symbol.length > 0)
                JSON_NUMBER(j, "offset", frame->offset);
        else if (name && name->dso.length > 0)
                JSON_NUMBER(j, "offset", frame->address);
        else
                JSON_NULL(j, "offset");
        if (name && name->dso.length > 0)
                JSON_TEXT(j, "dso", name->dso);
        else
                JSON_NULL(j, "dso");
        JSON_KEY(j, "build_id");
        if (name && name->build_id.length > 0)
                json_put_hex_bytes(j, name->build_id);
        else
                json_put_null(j);
        if (has_lines)
                put_source_line(j, frame);
        json_end(j, '}');
}

/* Those that were inlined at an address, and the function that they are in. Gives the frame behind them. */
static const NamedFrame *put_named_frames(Json *j, const NamedFrame *frame, bool has_lines) {
        for (; frame->is_inlined; frame++)
                put_frame(j, frame->ip, frame, has_lines);
        put_frame(j, frame->ip, frame, has_lines);
        return frame + 1;
}

/* frames: from the one of its first address on, of a program to the last one; NULL: they have no names. Gives those that are left. */
static const NamedFrame *put_callchain(Json *j, const ItemPlans *plans, const perfd_item *item, perfd_callchain part, const char *name,
                                       const NamedFrame *frames) {
        const NamedFrame *const end = frames ? plans->frames + plans->n_frames : NULL;
        const uint64_t *addresses;
        size_t n = perfd_item_callchain(item, part, &addresses);

        if (frames && part == PERFD_CALLCHAIN_USER)
                n = (size_t)(end - frames);
        if (n == 0)
                return frames;
        json_put_name(j, name);
        json_begin(j, '[');
        for (size_t i = 0; (i < n || (frames && part == PERFD_CALLCHAIN_USER)) && (!frames || frames < end); i++)
                if (frames)
                        frames = put_named_frames(j, frames, plans->has_lines);
                else if (plans && plans->has_frames)
                        put_frame(j, addresses[i], NULL, plans->has_lines);
                else
                        json_put_hex(j, addresses[i]);
        json_end(j, ']');
        return frames;
}

void frames_put_json(Json *j, ItemPlans *plans, const perfd_item *item) {
        const NamedFrame *frames = plans && plans->has_frames ? plans->frames : NULL;
        const ChainBegin begin = chain_begin(j->out);

        if (plans && plans->has_no_calls)
                return;
        if (j->comma && chain_texts_put(plans, j->out))
                return;
        frames = put_callchain(j, plans, item, PERFD_CALLCHAIN_KERNEL, "kernel_callchain", frames);
        (void)put_callchain(j, plans, item, PERFD_CALLCHAIN_USER, "user_callchain", frames);
        chain_texts_keep(plans, j->out, &begin);
}
