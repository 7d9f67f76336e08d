/*
 * Any text as a print format, and any values for it: what is shown of each field ends by a zero inside of its room, and is as long
 * as is said. Up to a zero the bytes are the format, what is behind it the values.
 */
#include <stdint.h>

#include "tests/unit/print-rig.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

static bool find_symbol(void *userdata, uint64_t address, perfd_symbol *ret) {
        (void)userdata;
        *ret = (perfd_symbol){ .name = "symbol", .module = "", .address = address & ~(uint64_t)15, .size = 16 };
        return address & 1;
}

static void look_at_field(const Rig *rig, size_t i) {
        const perfd_symbols symbols = { .size = sizeof(symbols), .find = find_symbol };
        char small[16], large[1024];
        size_t length = perfd_item_render(&rig->item, i, &symbols, large, sizeof(large));

        if (perfd_item_render(&rig->item, i, &symbols, small, sizeof(small)) != length)
                abort();
        if (!memchr(large, '\0', sizeof(large)) || !memchr(small, '\0', sizeof(small)))
                abort();
        if (length < sizeof(large) && large[length] != '\0')
                abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length) {
        const uint8_t *zero = length > 0 ? memchr(bytes, '\0', length) : NULL;
        size_t n = zero ? (size_t)(zero - bytes) : length, n_values = zero ? length - n - 1 : 0;
        char *print = malloc(n + 1);
        Rig rig = { .texts = { { .bytes = "" }, { .bytes = "" } } };

        if (!print)
                abort();
        if (n > 0)
                memcpy(print, bytes, n);
        print[n] = '\0';
        for (size_t i = 0; i < RIG_NUMBERS && i < n_values; i++)
                rig.numbers[i] = (uint64_t)(int64_t)(int8_t)zero[1 + i] << zero[1 + i] % 57;
        if (n_values > 0)
                rig.texts[0] = rig.texts[1] = (perfd_text){ .bytes = (const char *)zero + 1, .length = n_values };
        if (!rig_init(&rig, print))
                abort();
        for (size_t i = 0; i < RIG_FIELDS; i++)
                look_at_field(&rig, i);
        rig_deinit(&rig);
        free(print);
        return 0;
}
