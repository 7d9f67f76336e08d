/* Names of the kernel's functions, whose bytes stay the message's. */
#include <errno.h>

#include "client/result/result.h"

static perfd_text text_of(ProtobufCBinaryData bytes) {
        return (perfd_text){ .bytes = bytes.len > 0 ? (const char *)bytes.data : "", .length = bytes.len };
}

int result_add_kernel_names(perfd_result *result, const Perfd__V1__KernelNamesReply *m) {
        perfd_kernel_name *rows = arena_push(&result->arena, m->n_names, sizeof(*rows));

        if (!rows)
                return -ENOMEM;
        for (size_t i = 0; i < m->n_names; i++)
                rows[i] = (perfd_kernel_name){ .symbol = text_of(m->names[i]->symbol), .module = text_of(m->names[i]->module),
                                               .offset = m->names[i]->offset, .size = m->names[i]->size };
        result->kernel_names = rows;
        result->n_kernel_names = m->n_names;
        return 0;
}
