/* How much fits on a terminal. */
#pragma once

#include <stddef.h>

typedef struct TerminalSize {
        size_t rows, columns;
} TerminalSize;

/* Of that of `fd`, now; 24 by 80 if it does not say. */
TerminalSize terminal_size(int fd);

/* From now on lines on stdout are to be so wide, whatever it is: they go to a terminal through somebody who puts more on each. */
void terminal_set_width(size_t width);

/* Of a line on this fd: 0 if it is no terminal, so that nothing has to fit; 80 if the terminal does not say. */
size_t terminal_width(int fd);
