/*
 * libiberty's demanglers, which nm(1) and addr2line(1) have too. A few bytes of a mangled name can stand for gigabytes of a plain one, and
 * libiberty has no limit for that: once it is too long, its callback leaves it by longjmp(3). With callbacks it has nothing on the heap
 * then, but the few bytes of a part in punycode.
 */
#include "client/symbols/demangle.h"

#include <libiberty/demangle.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

#define MANGLED_MAX 8192 /* bytes: what is longer is left as it is */
#define PLAIN_MAX 32768

typedef struct Plain {
        char *text;
        size_t n;
        jmp_buf too_long;
} Plain;

static void take(const char *text, size_t n, void *userdata) {
        Plain *plain = userdata;

        if (n >= PLAIN_MAX - plain->n)
                longjmp(plain->too_long, 1);
        if (n > 0) /* of nothing libiberty has no address */
                memcpy(plain->text + plain->n, text, n);
        plain->n += n;
}

/* 1: it is in `plain` */
static int demangle_into(const char *name, int options, Plain *plain) {
        if (setjmp(plain->too_long))
                return 0;
        if (rust_demangle_callback(name, options, take, plain))
                return 1;
        plain->n = 0;
        return cplus_demangle_v3_callback(name, options, take, plain);
}

char *demangle(const char *name, bool has_parameters) {
        const char *version = strchr(name, '@'); /* "@plt", "@@GLIBCXX_3.4": it stays */
        const size_t n = version ? (size_t)(version - name) : strlen(name);
        char mangled[MANGLED_MAX];
        Plain plain = { .n = 0 };
        char *text = NULL;

        if (name[0] != '_' || (name[1] != 'Z' && name[1] != 'R') || n >= MANGLED_MAX)
                return NULL;
        memcpy(mangled, name, n);
        mangled[n] = '\0';
        plain.text = malloc(PLAIN_MAX);
        if (plain.text && demangle_into(mangled, has_parameters ? DMGL_PARAMS | DMGL_ANSI : DMGL_NO_OPTS, &plain) && plain.n > 0) {
                const size_t more = version ? strlen(version) : 0;

                text = malloc(plain.n + more + 1);
                if (text) {
                        memcpy(text, plain.text, plain.n);
                        memcpy(text + plain.n, version ? version : "", more);
                        text[plain.n + more] = '\0';
                }
        }
        free(plain.text);
        return text;
}
