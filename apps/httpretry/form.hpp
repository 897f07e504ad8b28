// The values of -F, as curl reads them.
#pragma once

#include <httpretry/form.hpp>

#include <string>

namespace httpretry::cli {

// "name=text", "name=@file", "name=<file", each with ";type=…" and ";filename=…" behind it. Throws
// UsageError and ReadError; `give_up` as for upload_body.
FormPart form_part(const std::string& value, int give_up);

}  // namespace httpretry::cli
