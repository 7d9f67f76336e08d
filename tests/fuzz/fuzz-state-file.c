/*
 * Any bytes as the state file: what passes its check is a list of events of exactly the length that its first line says, and
 * what its texts hold is checked as those of a client are.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/control/control.h"
#include "daemon/kernel/host/state-file.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

static void must_be(int yes) {
        if (!yes)
                abort();
}

/* The events as a request, which is what becomes of them. */
static void check_texts(Perfd__V1__AddRequest *add) {
        Perfd__V1__Request request = PERFD__V1__REQUEST__INIT;
        Explanation e = EXPLANATION_NULL;
        int r;

        request.body_case = PERFD__V1__REQUEST__BODY_ADD;
        request.add = add;
        r = request_check_texts(&request, &e);
        must_be(r == 0 || (r == REFUSED_INVALID && e.text[0] && strcmp(e.reason, "bad-text") == 0));
        for (size_t i = 0; r == 0 && i < add->n_events; i++) {
                must_be(!strpbrk(add->events[i]->event, "\n\x1b") && !strpbrk(add->events[i]->name, "\n\x1b"));
                must_be(!strpbrk(add->events[i]->filter, "\x1b\x7f"));
        }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length) {
        Perfd__V1__AddRequest *add;
        size_t begin = SIZE_MAX;
        Explanation e;
        int r = state_file_check("fuzz", bytes, length, &begin, &e);

        /* a length that is right is rarely found by chance, so the same bytes are also what would stand behind it */
        must_be(r == 0 || (r == REFUSED_INVALID && begin == SIZE_MAX && strcmp(e.reason, "state-file") == 0));
        if (r != 0)
                begin = 0;
        must_be(r != 0 || (begin <= length && begin > 0 && bytes[begin - 1] == '\n'));
        add = perfd__v1__add_request__unpack(NULL, length - begin, bytes + begin);
        if (!add)
                return 0;
        check_texts(add);
        perfd__v1__add_request__free_unpacked(add, NULL);
        return 0;
}
