/* For a test that is linked with --wrap of these four: one allocation fails, the n-th from now. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

static unsigned until_failure; /* 0: none fails; n: the n-th from now */

static bool fails_now(void) {
        return until_failure > 0 && --until_failure == 0;
}

void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_malloc(size_t size) {
        return fails_now() ? NULL : __real_malloc(size);
}

void *__real_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size) {
        return fails_now() ? NULL : __real_calloc(n, size);
}

void *__real_reallocarray(void *old, size_t n, size_t size);
void *__wrap_reallocarray(void *old, size_t n, size_t size);
void *__wrap_reallocarray(void *old, size_t n, size_t size) {
        return fails_now() ? NULL : __real_reallocarray(old, n, size);
}

char *__real_strdup(const char *text);
char *__wrap_strdup(const char *text);
char *__wrap_strdup(const char *text) {
        return fails_now() ? NULL : __real_strdup(text);
}
