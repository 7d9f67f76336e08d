#include "config/text/number.h"

bool number_decode(const char *text, uint64_t *ret, const char **ret_end) {
        uint64_t n = 0;
        const char *s = text;

        for (; *s >= '0' && *s <= '9'; s++)
                if (__builtin_mul_overflow(n, 10, &n) || __builtin_add_overflow(n, (uint64_t)(*s - '0'), &n))
                        return false;
        if (s == text)
                return false;
        *ret = n;
        *ret_end = s;
        return true;
}
