/* Units are one table for each kind; a number without one is bytes, but never a time: 10 of what? */
#include "client/perfctl/base/quantity.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

typedef struct Unit {
        const char *name;
        uint64_t factor;
} Unit;

static const Unit times[] = {
        { "ns", 1 }, { "us", 1000 }, { "ms", 1000000 }, { "s", 1000000000 }, { "m", 60000000000 }, { "min", 60000000000 },
        { "h", 3600000000000 }, { "d", 86400000000000 }, { NULL, 0 },
};

static const Unit sizes[] = {
        { "", 1 },         { "B", 1 },           { "K", 1ULL << 10 },   { "KiB", 1ULL << 10 }, { "M", 1ULL << 20 },
        { "MiB", 1ULL << 20 }, { "G", 1ULL << 30 }, { "GiB", 1ULL << 30 }, { NULL, 0 },
};

/* strtoull(3) would take signs and spaces. */
static const char *digits_parse(const char *text, uint64_t *ret) {
        uint64_t number = 0;

        if (!isdigit((unsigned char)*text))
                return NULL;
        for (; isdigit((unsigned char)*text); text++)
                if (__builtin_mul_overflow(number, 10, &number) ||
                    __builtin_add_overflow(number, (uint64_t)(*text - '0'), &number))
                        return NULL;
        *ret = number;
        return text;
}

static const char *hex_digits_parse(const char *text, uint64_t *ret) {
        uint64_t number = 0;

        if (!isxdigit((unsigned char)*text))
                return NULL;
        for (; isxdigit((unsigned char)*text); text++) {
                int digit = isdigit((unsigned char)*text) ? *text - '0' : tolower((unsigned char)*text) - 'a' + 10;

                if (number >> 60)
                        return NULL;
                number = number << 4 | (unsigned)digit;
        }
        *ret = number;
        return text;
}

static bool parse_with_unit(const char *text, const Unit *units, uint64_t *ret) {
        uint64_t number;
        const char *rest = digits_parse(text, &number);

        for (; rest && units->name; units++)
                if (strcmp(units->name, rest) == 0)
                        return !__builtin_mul_overflow(number, units->factor, ret);
        return false;
}

bool quantity_parse_number(const char *text, uint64_t *ret) {
        uint64_t number;
        bool is_hex = text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
        const char *rest = is_hex ? hex_digits_parse(text + 2, &number) : digits_parse(text, &number);

        if (!rest || *rest)
                return false;
        *ret = number;
        return true;
}

bool quantity_is_too_large(const char *text) {
        bool is_hex = text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
        const char *digits = is_hex ? text + 2 : text;
        uint64_t number;

        return *digits && strspn(digits, is_hex ? "0123456789abcdefABCDEF" : "0123456789") == strlen(digits) &&
               !quantity_parse_number(text, &number);
}

bool quantity_parse_time(const char *text, uint64_t *ret_nsec) {
        uint64_t nsec;

        if (!parse_with_unit(text, times, &nsec))
                return false;
        *ret_nsec = nsec;
        return true;
}

const char *quantity_lack_of_time(const char *text) {
        const size_t n = strspn(text, "0123456789");

        if (n == 0)
                return "";
        return !text[n] ? ": the unit is missing" : text[n] == '.' ? ": write a whole number, in a smaller unit" : "";
}

bool quantity_parse_size(const char *text, uint64_t *ret_bytes) {
        uint64_t bytes;

        if (!parse_with_unit(text, sizes, &bytes))
                return false;
        *ret_bytes = bytes;
        return true;
}

char *quantity_show_size(uint64_t bytes, char to[static QUANTITY_SIZE]) {
        static const char *const names[] = { "KiB", "MiB", "GiB", "TiB", "PiB", "EiB" };
        double size = (double)bytes / 1024;
        size_t i = 0;

        if (bytes < 1024) {
                (void)snprintf(to, QUANTITY_SIZE, "%" PRIu64 " B", bytes);
                return to;
        }
        for (; size >= 1024 && i < sizeof(names) / sizeof(names[0]) - 1; i++)
                size /= 1024;
        (void)snprintf(to, QUANTITY_SIZE, "%.1f %s", size, names[i]);
        return to;
}

char *quantity_show_time(uint64_t nsec, char to[static QUANTITY_SIZE]) {
        uint64_t seconds = nsec / 1000000000;

        if (nsec < 1000)
                (void)snprintf(to, QUANTITY_SIZE, "%" PRIu64 " ns", nsec);
        else if (nsec < 1000000)
                (void)snprintf(to, QUANTITY_SIZE, "%.1f us", (double)nsec / 1e3);
        else if (nsec < 1000000000)
                (void)snprintf(to, QUANTITY_SIZE, "%.1f ms", (double)nsec / 1e6);
        else if (seconds < 60)
                (void)snprintf(to, QUANTITY_SIZE, "%.1f s", (double)nsec / 1e9);
        else if (seconds < 3600)
                (void)snprintf(to, QUANTITY_SIZE, "%" PRIu64 " min %" PRIu64 " s", seconds / 60, seconds % 60);
        else if (seconds < 86400)
                (void)snprintf(to, QUANTITY_SIZE, "%" PRIu64 " h %" PRIu64 " min", seconds / 3600, seconds / 60 % 60);
        else
                (void)snprintf(to, QUANTITY_SIZE, "%" PRIu64 " d %" PRIu64 " h", seconds / 86400, seconds / 3600 % 24);
        return to;
}
