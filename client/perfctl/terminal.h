/* How much fits on a terminal. */
#pragma once

#include <stddef.h>

typedef struct TerminalSize {
        size_t rows, columns;
} TerminalSize;

/* Of stdout, now; 24 by 80 if it does not say. */
TerminalSize terminal_size(void);
