/* Names of losses, from the one table. */
#include "daemon/model/loss.h"

#include <assert.h>

static const char *const losses[] = {
#define LOSS(code, name, help) [LOSS_##code] = name,
#include "daemon/model/loss.def"
#undef LOSS
};

const char *loss_name(Loss loss) {
        assert(loss >= 0 && loss < _LOSS_MAX);
        return losses[loss];
}
