/*
 * How long an instruction of x86-64 is: all that has to be known of a function's instructions to find where each begins. A pure
 * function of the bytes, any thread.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define X86_64_INSTRUCTION_SIZE_MAX 15

/* 0: it cannot be said, because the n bytes are too few for it, no instruction, one that makers of CPUs read differently, or newer
 * than this. */
size_t x86_64_instruction_size(const uint8_t *bytes, size_t n);
