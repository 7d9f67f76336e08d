/* For messages: where an indirect function (STT_GNU_IFUNC) has its code on this machine. */
#pragma once

/*
 * event: "uprobe:PATH:SYMBOL". "uprobe:PATH:0xADDRESS" of what SYMBOL selects here, malloc'ed; NULL: perfctl itself does not use that
 * file, so that nobody has selected anything, or it is no such function.
 */
char *indirect_function_find(const char *event);
