/* For print formats: what an expression is for one item. */
#pragma once

#include "client/print/expression.h"
#include "client/render/field.h"

/* False: it cannot be told from the record alone, or is larger than the scratch. */
bool print_evaluate(PrintEvaluation *e, const PrintNode *node, PrintValue *ret);
