/*
 * A filter expression to tokens. What a token holds (names, texts) is put into the Filter's own pools, which have been
 * made as large as the expression can need.
 */
#pragma once

#include "daemon/route/filter-tree.h"

typedef enum TokenKind {
        TOKEN_END,
        TOKEN_LEAF, /* node.kind says which */
        TOKEN_OPERATOR,
        TOKEN_OPEN,
        TOKEN_CLOSE,
        TOKEN_INDEX, /* [ */
        TOKEN_INDEX_END,
} TokenKind;

typedef struct Token {
        TokenKind kind;
        size_t position, length; /* in bytes of the expression */
        FilterNode node;         /* OPERATOR: only its kind */
} Token;

typedef struct Lexer {
        const char *text;
        size_t at;
        Filter *filter;
} Lexer;

/* The next token; at the end TOKEN_END, again and again. REFUSED_INVALID. */
int lexer_next(Lexer *l, Token *ret, Explanation *e);

/* filter-text.c: the text in quotes at l->at. REFUSED_INVALID. */
int lexer_next_text(Lexer *l, Token *ret, Explanation *e);
