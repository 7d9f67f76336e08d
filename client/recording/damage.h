/* For this folder and recorded/: what is wrong with a recording, and where: said, or the end of reading it. */
#pragma once

#include "client/recording/reading.h"

/* PERFD_E_INVALID or -errno: that code, with a text. */
int recording_fail(perfd_recording *r, int code, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* What is wrong there, which does not end the reading. 0; -ENOMEM */
int recording_damage(perfd_recording *r, uint64_t offset, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* What was wrong in these bytes, if anything was. what: "section HOSTNAME". 0; -ENOMEM */
int recording_damage_of(perfd_recording *r, const Bytes *b, const char *what);
/* The bytes there, at most n: until the next call. 0; -ENOMEM, -errno with a text */
int recording_get(perfd_recording *r, uint64_t offset, size_t n, Bytes *ret);
