/*
 * What JetStream answers to a message, {"stream":"perfd","seq":7} or {"error":{"code":503,"err_code":10077,"description":"..."}}, and
 * what its errors mean for who looks after the relay. Whatever a server sends is read, and no more of it than there is. Pure, any
 * thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define NATS_TEXT_SIZE 320 /* of a reason for the log */

/*
 * Whether it is stored, in `stream` or its stream of descriptors. False: `text` says why not, and what to do.
 */
bool nats_answer_read(const char *bytes, size_t n, const char *stream, char text[static NATS_TEXT_SIZE]);
/* What to do about an error of JetStream, by its err_code; "" is nothing that is known. */
const char *nats_advice(long code);
