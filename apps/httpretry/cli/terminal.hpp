// The terminal, and where messages go.
#pragma once

#include <string>

namespace httpretry::cli {

// Asks for a password on the terminal of this process, without showing it. False if there is no
// terminal. When `cancel` becomes readable (-1: never), the wait ends with WaitEnded.
bool ask_password(const std::string& question, std::string& answer, int cancel);

// --stderr: standard error goes to a file that is emptied first, or with "-" to standard output.
// Throws WriteError.
void redirect_messages(const std::string& file);

}  // namespace httpretry::cli
