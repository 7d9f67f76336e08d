/* JSON of exports. Any thread. */
#pragma once

#include <stdio.h>

/*
 * A string in quotes, as utf8_export() has its characters. None of them can end what it stands in, in a script of HTML too: control
 * characters, <, >, &, U+2028 and U+2029 are escaped.
 */
void json_text_put(FILE *out, const char *text);
