/* How much fits on a terminal. */
#pragma once

#include <stddef.h>

typedef struct TerminalSize {
        size_t rows, columns;
} TerminalSize;

/* Of that of `fd`, now; 24 by 80 if it does not say. */
TerminalSize terminal_size(int fd);

/* Of a line on this fd: 0 if it is no terminal, so that nothing has to fit; 80 if the terminal does not say. */
size_t terminal_width(int fd);
