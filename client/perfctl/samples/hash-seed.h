/* For the hash tables of report. Names come from whoever is traced, who must not know which of them share a slot. */
#pragma once

#include <stdint.h>

uint64_t seed_new(void);
/* Of id_table_add(): ends the program where there is no memory. */
void ids_must_have(int code);
