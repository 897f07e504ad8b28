// The default for ClientOptions::random.
#pragma once

namespace httpretry {

// Uniform in [0, 1), from a generator of this thread with a seed from the system.
double system_random();

}  // namespace httpretry
