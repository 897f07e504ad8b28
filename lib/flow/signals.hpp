// For the threads of the library.
#pragma once

namespace httpretry {

// The program's handlers run on the program's threads. SIGPIPE above all: OpenSSL's writes raise it
// where the server has closed, and the error that comes with it is all that is needed.
void block_signals();

}  // namespace httpretry
