/* For messages: foreign text made safe to show, and the word that was probably meant. Any thread. */
#pragma once

#include <stddef.h>

#define QUOTE_SIZE 96

/*
 * 'text' in quotes: what does not print (control characters, invalid UTF-8, characters that change the direction of
 * writing) as \xNN, and cut with "..." after about 80 bytes, so that a message can go to a terminal and into a
 * protobuf string whatever stood in the file. Of a URL with user information that is "***". Writes to and returns `buffer`.
 */
char *quote_text(char buffer[static QUOTE_SIZE], const char *text);
/* Valid until the end of the enclosing block. */
#define QUOTE(text) quote_text((char[QUOTE_SIZE]){ 0 }, (text))

/* The best of the candidates offered so far; word is NULL if none is near. */
typedef struct Nearest {
        const char *word;
        unsigned distance;
        size_t n_compared; /* letters with letters, so far */
} Nearest;

#define NEAREST_NULL ((Nearest){ .word = NULL })

/*
 * A candidate is near if at most a third of it (but always one letter) is wrong. Keeps the pointer. What a client gets wrong is
 * compared with all that there is: one hint takes no more than some milliseconds of work, and then later candidates are none.
 */
#define NEAREST_COMPARES ((size_t)1 << 20)
void nearest_add(Nearest *n, const char *found, const char *candidate);

#define NEAREST_HINT_SIZE 120
/* "; did you mean 'x'?", or "" if nothing is near. */
char *nearest_hint(const Nearest *n, char buffer[static NEAREST_HINT_SIZE]);
#define HINT(n) nearest_hint((n), (char[NEAREST_HINT_SIZE]){ 0 })
