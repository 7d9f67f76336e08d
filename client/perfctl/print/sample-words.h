/* For items: what the hardware says of a sample, in the words of perf-script(1) where it has some. */
#pragma once

#include <stddef.h>

#include "client/perfd.h"

#define WORDS_MAX ((size_t)640) /* bytes that the longest of these takes, with its zero */

/* "OP LOAD|LVL L1 hit|SNP None|TLB L1 hit|LCK No|BLK N/A" */
void data_source_words(const perfd_data_source *d, char *to);
/* Whether these words say anything: of samples of software events nothing is known. */
bool data_source_says(const char *words);
/* "TX|SYNC|RETRY", the names of the flags that are set; "" if none is */
void transaction_words(const perfd_transaction *t, char *to);

/* "COND_CALL"; NULL for 0 and what has no name */
const char *branch_type_word(const perfd_branch *b);
const char *branch_spec_word(const perfd_branch *b);
const char *branch_privilege_word(const perfd_branch *b);
/* 'P', 'M' or '-' */
char branch_prediction(const perfd_branch *b);
