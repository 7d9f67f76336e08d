/* For this folder alone: sorts places of records by their times; those of the same time keep their order. scratch: room for n */
#pragma once

#include "client/recording/stored.h"

void entries_sort(Entry *list, size_t n, Entry *scratch);
