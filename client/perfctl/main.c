/* The program is perfctl_run(), which tests call too. */
#include <locale.h>

#include "client/perfctl/base/perfctl.h"

int main(int argc, char **argv) {
        (void)setlocale(
                LC_CTYPE,
                "C.UTF-8"); /* for wcwidth(3): all text is UTF-8, and without it wide characters count as one column */
        return perfctl_run(argc, argv);
}
