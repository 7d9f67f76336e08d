/* For `top`: what keys do. Pure. */
#pragma once

#include "client/perfctl/top/rows.h"

typedef struct TopKeys {
        TopLook look;
        size_t subject, n_subjects;
        size_t first;   /* row that is shown at the top of the table */
        bool is_paused; /* the table stays; counting goes on */
        bool is_typing; /* the filter */
        bool has_help;  /* is shown instead of the table */
} TopKeys;

/* What is to be done about a key. */
typedef enum TopAction {
        TOP_NOTHING,
        TOP_DRAW,    /* what there is, in another way */
        TOP_LOOK,    /* rows are to be put in another order, or others left out */
        TOP_ZERO,    /* forget what was counted */
        TOP_SUBJECT, /* the same, and count by `subject` */
        TOP_QUIT,
} TopAction;

/* key: as screen_key() gives it; n_rows: of the table, of which a page shows n_page. */
TopAction top_keys_take(TopKeys *k, int key, size_t n_rows, size_t n_page);
/* Rows that are not there any more are not scrolled to. */
void top_keys_fit(TopKeys *k, size_t n_rows, size_t n_page);

extern const char *const top_keys_help[]; /* lines, ended by NULL */
#define TOP_KEYS_LINE "q quit  b by  s sort  t total  p pause  z zero  / filter  ? help"
