/* Names and meanings of losses, from the one table. */
#include "daemon/model/loss.h"

#include <assert.h>

static const struct {
        const char *name, *help;
} losses[] = {
#define LOSS(code, name_, help_) [LOSS_##code] = { name_, help_ },
#include "daemon/model/loss.def"
#undef LOSS
};

const char *loss_name(Loss loss) {
        assert(loss >= 0 && loss < _LOSS_MAX);
        return losses[loss].name;
}

const char *loss_help(Loss loss) {
        assert(loss >= 0 && loss < _LOSS_MAX);
        return losses[loss].help;
}
