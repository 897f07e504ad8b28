#include "args.hpp"
#include "verbs.hpp"

namespace httpretry::cli {

int serve(const Args& /*args*/) { throw UsageError("`serve` is not supported yet"); }

}  // namespace httpretry::cli
