#include "args.hpp"
#include "verbs.hpp"

namespace httpretry::cli {

int policy(const Args& /*args*/) { throw UsageError("`policy` is not supported yet"); }

}  // namespace httpretry::cli
