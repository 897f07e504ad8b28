#include "args.hpp"
#include "verbs.hpp"

namespace httpretry::cli {

int plan(const Args& /*args*/) { throw UsageError("`plan` is not supported yet"); }

}  // namespace httpretry::cli
