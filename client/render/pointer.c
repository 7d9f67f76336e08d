/*
 * What a pointer points to is shown only if it lies in the record. A bare %p is the address as the record has it, where the kernel
 * would print a hash of it.
 */
#include "client/render/pointer.h"

#include <inttypes.h>
#include <string.h>

typedef struct Pointer {
        const char *letters;
        size_t n_letters;
        int64_t n; /* of a '*' */
        const PrintValue *value;
} Pointer;

static bool has_letter(const Pointer *p, char c) {
        return memchr(p->letters, c, p->n_letters) != NULL;
}

static uint8_t byte_at(const Pointer *p, size_t i) {
        return (uint8_t)p->value->bytes[i];
}

static unsigned pair_at(const Pointer *p, size_t i) {
        return (unsigned)byte_at(p, i) << 8 | byte_at(p, i + 1);
}

static bool has_bytes(const Pointer *p, size_t n) {
        return p->value->is_bytes && p->value->length >= n;
}

/* symbol_string(): %pS has the place in the function, %ps its name alone */
static bool put_symbol(Render *r, const Pointer *p, const perfd_symbols *symbols) {
        bool has_place = p->letters[0] == 'S' || p->letters[0] == 'F' || p->letters[0] == 'B';
        uint64_t address = p->value->number;
        perfd_symbol symbol;

        if (p->value->is_bytes)
                return false;
        if (!symbols || !symbols->find(symbols->userdata, address - (p->letters[0] == 'B'), &symbol)) {
                render_number(r, "0x%" PRIx64, address);
                return true;
        }
        render_string(r, symbol.name);
        if (has_place)
                render_number(r, "+0x%" PRIx64 "/0x%" PRIx64, address - symbol.address, symbol.size);
        if (*symbol.module) {
                render_string(r, " [");
                render_string(r, symbol.module);
                render_string(r, "]");
        }
        return true;
}

static void put_ip4(Render *r, const Pointer *p, size_t at, bool has_zeros) {
        for (size_t i = 0; i < 4; i++)
                render_number(r, has_zeros ? "%s%03u" : "%s%u", i > 0 ? "." : "", byte_at(p, at + i));
}

/* ip6_compressed_string(): the first of the longest runs of zeros is "::", but not a single one */
static void put_ip6_compressed(Render *r, const Pointer *p, size_t at) {
        static const char mapped[12] = { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, (char)0xff, (char)0xff };
        bool is_mapped = memcmp(p->value->bytes + at, mapped, sizeof(mapped)) == 0;
        size_t n = is_mapped ? 6 : 8, begin = n, longest = 1;

        for (size_t i = 0; i < n; i++) {
                size_t run = 0;

                while (i + run < n && pair_at(p, at + 2 * (i + run)) == 0)
                        run++;
                if (run > longest) {
                        begin = i;
                        longest = run;
                }
        }
        for (size_t i = 0; i < n; i++) {
                if (i == begin) {
                        render_string(r, "::");
                        i += longest - 1;
                        continue;
                }
                render_number(r, "%s%x", i > 0 && i != begin + longest ? ":" : "", pair_at(p, at + 2 * i));
        }
        if (!is_mapped)
                return;
        if (begin + longest != n)
                render_string(r, ":");
        put_ip4(r, p, at + 12, false);
}

static void put_ip6(Render *r, const Pointer *p, size_t at, bool is_compressed, bool has_colons) {
        if (is_compressed) {
                put_ip6_compressed(r, p, at);
                return;
        }
        for (size_t i = 0; i < 8; i++)
                render_number(r, "%s%04x", i > 0 && has_colons ? ":" : "", pair_at(p, at + 2 * i));
}

/* ip4_addr_string_sa(), ip6_addr_string_sa(): of a struct sockaddr, 'p' with its port, 'c' compressed */
static bool put_sockaddr(Render *r, const Pointer *p) {
        bool has_port = has_letter(p, 'p');
        uint16_t family;

        if (!has_bytes(p, 8))
                return false;
        memcpy(&family, p->value->bytes, sizeof(family));
        if (family == 2) {
                put_ip4(r, p, 4, p->letters[0] == 'i');
        } else if (family == 10 && has_bytes(p, 24)) {
                render_string(r, has_port ? "[" : "");
                put_ip6(r, p, 8, has_letter(p, 'c'), true);
                render_string(r, has_port ? "]" : "");
        } else
                return false;
        if (has_port)
                render_number(r, ":%u", pair_at(p, 2));
        return true;
}

static bool put_ip(Render *r, const Pointer *p) {
        char kind = p->n_letters > 1 ? p->letters[1] : '\0';

        if (kind == 'S')
                return put_sockaddr(r, p);
        if (kind == '4' && has_bytes(p, 4)) {
                put_ip4(r, p, 0, p->letters[0] == 'i');
                return true;
        }
        if (kind == '6' && has_bytes(p, 16)) {
                put_ip6(r, p, 0, p->n_letters > 2 && p->letters[2] == 'c', p->letters[0] == 'I');
                return true;
        }
        return false;
}

static bool put_mac(Render *r, const Pointer *p) {
        const char *between = p->letters[0] == 'm' ? "" : has_letter(p, 'F') ? "-" : ":";
        bool is_reversed = has_letter(p, 'R');

        if (!has_bytes(p, 6))
                return false;
        for (size_t i = 0; i < 6; i++)
                render_number(r, "%s%02x", i > 0 ? between : "", byte_at(p, is_reversed ? 5 - i : i));
        return true;
}

/* uuid_string(): big endian, or as EFI has it */
static bool put_uuid(Render *r, const Pointer *p) {
        static const uint8_t orders[2][16] = {
                { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15 },
                { 3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15 },
        };
        char kind = p->n_letters > 1 ? p->letters[1] : 'b';
        const uint8_t *order = orders[kind == 'l' || kind == 'L'];
        bool is_upper = kind == 'B' || kind == 'L';

        if (!has_bytes(p, 16))
                return false;
        for (size_t i = 0; i < 16; i++) {
                uint8_t byte = byte_at(p, order[i]);
                const char *before = i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "";

                render_number(r, is_upper ? "%s%02X" : "%s%02x", before, byte);
        }
        return true;
}

/* hex_string(): at most 64 bytes */
static bool put_hex(Render *r, const Pointer *p) {
        const char *between = has_letter(p, 'C') ? ":" : has_letter(p, 'D') ? "-" : has_letter(p, 'N') ? "" : " ";
        size_t n = p->n < 0 ? 1 : p->n > 64 ? 64 : (size_t)p->n;

        if (!has_bytes(p, n))
                return false;
        for (size_t i = 0; i < n; i++)
                render_number(r, "%s%02x", i > 0 ? between : "", byte_at(p, i));
        return true;
}

static bool bit_at(const Pointer *p, size_t i) {
        return byte_at(p, i / 8) >> i % 8 & 1; /* of longs, low bytes first */
}

/* bitmap_list_string(): "0-3,8" */
static void put_bit_list(Render *r, const Pointer *p, size_t n) {
        const char *between = "";

        for (size_t i = 0; i < n; i++) {
                size_t begin = i;

                if (!bit_at(p, i))
                        continue;
                while (i + 1 < n && bit_at(p, i + 1))
                        i++;
                render_number(r, i > begin ? "%s%zu-%zu" : "%s%zu", between, begin, i);
                between = ",";
        }
}

/* bitmap_string(): words of 32 bits, the highest first and no wider than the bits that it has */
static void put_bits(Render *r, const Pointer *p, size_t n) {
        for (size_t word = (n + 31) / 32; word-- > 0;) {
                size_t n_bits = n - 32 * word < 32 ? n - 32 * word : 32;
                uint32_t bits = 0;

                for (size_t i = 0; i < n_bits; i++)
                        bits |= (uint32_t)bit_at(p, 32 * word + i) << i;
                render_number(r, "%s%0*x", 32 * (word + 1) < n ? "," : "", (int)((n_bits + 3) / 4), bits);
        }
}

static bool put_bitmap(Render *r, const Pointer *p) {
        if (p->n <= 0 || p->n > 65536 || !has_bytes(p, ((size_t)p->n + 7) / 8))
                return false;
        if (p->n_letters > 1 && p->letters[1] == 'l')
                put_bit_list(r, p, (size_t)p->n);
        else
                put_bits(r, p, (size_t)p->n);
        return true;
}

bool print_pointer(Render *r, const char *letters, size_t n_letters, int64_t n, const PrintValue *v, const perfd_symbols *symbols) {
        Pointer p = { .letters = letters, .n_letters = n_letters, .n = n, .value = v };

        switch (n_letters > 0 ? letters[0] : '\0') {
        case 'S':
        case 's':
        case 'F':
        case 'f':
        case 'B':
                return put_symbol(r, &p, symbols);
        case 'I':
        case 'i':
                return put_ip(r, &p);
        case 'M':
        case 'm':
                return put_mac(r, &p);
        case 'U':
                return put_uuid(r, &p);
        case 'h':
                return put_hex(r, &p);
        case 'b':
                return put_bitmap(r, &p);
        case '\0':
        case 'K':
        case 'x':
                if (v->is_bytes)
                        return false;
                render_number(r, "0x%" PRIx64, v->number);
                return true;
        default:
                return false;
        }
}
