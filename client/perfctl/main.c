/* The program is perfctl_run(), which tests call too. */
#include "client/perfctl/perfctl.h"

int main(int argc, char **argv) {
        return perfctl_run(argc, argv);
}
