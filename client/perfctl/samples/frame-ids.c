/* Samples are of few functions: which frame the name was is remembered, so that it is hashed once. */
#include "client/perfctl/samples/frame-ids.h"

#include <stdlib.h>
#include <string.h>

#include "client/perfctl/base/digits.h"
#include "client/perfctl/samples/hash-seed.h"

void frame_ids_init(FrameIds *f, TextIds *texts) {
        *f = (FrameIds){ .texts = texts, .seed = seed_new() };
        f->remembered = must_have(calloc(FRAMES_REMEMBERED, sizeof(*f->remembered)));
}

void frame_ids_deinit(FrameIds *f) {
        free(f->list);
        free(f->remembered);
        id_table_deinit(&f->ids);
        *f = (FrameIds){ .list = NULL };
}

void frame_ids_forget_names(FrameIds *f) {
        memset(f->remembered, 0, FRAMES_REMEMBERED * sizeof(*f->remembered));
}

static uint32_t address_text(TextIds *t, uint64_t address) {
        char text[2 + HEX_ROOM] = "0x";

        return text_ids_add(t, (perfd_text){ .bytes = text, .length = (size_t)(hex_put(text + 2, address) - text) }, false);
}

static uint32_t find_or_add(FrameIds *f, const FrameId *frame) {
        uint32_t hash = id_hash(f->seed, frame, sizeof(*frame)), id;
        size_t at = hash;

        while (id_table_next(&f->ids, hash, &at, &id))
                if (memcmp(&f->list[id], frame, sizeof(*frame)) == 0)
                        return id;
        if (f->n == f->room) {
                f->room = f->room > 0 ? 2 * f->room : 256;
                f->list = must_have(reallocarray(f->list, f->room, sizeof(*f->list)));
        }
        ids_must_have(id_table_add(&f->ids, hash, f->n));
        f->list[f->n] = *frame;
        return f->n++;
}

static uint32_t line_text(TextIds *t, const FrameName *at) {
        char line[2 + DECIMAL_ROOM] = ":";
        char *text = must_have(malloc(at->file.length + sizeof(line)));
        const size_t n_line = (size_t)(decimal_put(line + 1, at->line) - line);
        uint32_t id;

        memcpy(mempcpy(text, at->file.bytes, at->file.length), line, n_line);
        id = text_ids_add(t, (perfd_text){ .bytes = text, .length = at->file.length + n_line }, false);
        free(text);
        return id;
}

uint32_t frame_ids_add(FrameIds *f, const NamedFrame *frame, const FrameName *at) {
        const FrameName *name = frame->name;
        const uint64_t address = name->symbol.length > 0 ? 0 : frame->address;
        RememberedFrame *r = &f->remembered[(((uintptr_t)name ^ address) * UINT64_C(0x9e3779b97f4a7c15) >> 40) & (FRAMES_REMEMBERED - 1)];
        FrameId id = { .is_inlined = frame->is_inlined, .is_kernel = frame->is_kernel, .line = ID_NONE, .file = ID_NONE,
                       .function = ID_NONE };

        if (r->name == name && r->at == at && r->address == address && r->is_inlined == frame->is_inlined && r->is_kernel == frame->is_kernel)
                return r->id;
        id.dso = name->dso.length > 0 ? text_ids_add(f->texts, name->dso, false) : ID_NONE;
        id.symbol = name->symbol.length > 0 ? text_ids_add(f->texts, name->symbol, false) : address_text(f->texts, address);
        if (at && at->file.length > 0) {
                id.function = find_or_add(f, &id);
                id.line = line_text(f->texts, at);
                id.file = text_ids_add(f->texts, at->file, false);
        }
        *r = (RememberedFrame){ .name = name, .at = at, .address = address, .is_inlined = frame->is_inlined, .is_kernel = frame->is_kernel,
                                .id = find_or_add(f, &id) };
        return r->id;
}
