/* For `count`: what the numbers of a key's samples come to, as the map functions of bpftrace(8) have it. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "client/perfctl/print/json.h"

typedef enum CountFunction {
        COUNT_SUM,
        COUNT_AVG,
        COUNT_MIN,
        COUNT_MAX,
        _COUNT_FUNCTION_MAX,
} CountFunction;

/* A sum of 64-bit numbers that would leave these 128 bits takes 2^63 samples. */
typedef __int128 CountWide;

typedef struct CountNumber {
        CountWide value; /* of an average the sum */
        uint64_t n;      /* of samples that had one; 0: there is no value */
} CountNumber;

/* "sum" of COUNT_SUM: the option, and the key of JSON. */
const char *count_function_name(CountFunction f);
/* "an average", for messages. */
const char *count_function_noun(CountFunction f);

void count_number_add(CountNumber *c, CountFunction f, uint64_t number, bool is_signed);
void count_number_merge(CountNumber *c, CountFunction f, const CountNumber *more);
/* The larger one first, and one without a value last: below 0 if that is `a`. */
int count_number_compare(const CountNumber *a, const CountNumber *b, CountFunction f);
/* In malloc'ed memory; "-" if there is no value. */
char *count_number_text(const CountNumber *c, CountFunction f);
void count_number_put_json(Json *j, const CountNumber *c, CountFunction f);
