/* Bytes of any number into a file, as gzip. One thread. */
#pragma once

#include <stdio.h>
#include <zlib.h>

typedef struct GzipStream {
        FILE *out;
        z_stream z;
} GzipStream;

/* 0 or -ENOMEM. */
int gzip_stream_init(GzipStream *g, FILE *out);
/* Errors of the file are kept there, for ferror(3). */
void gzip_stream_put(GzipStream *g, const void *bytes, size_t n);
/* Writes what is left, and frees. */
void gzip_stream_finish(GzipStream *g);
