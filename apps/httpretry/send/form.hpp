// The values of -F and --form-string, as curl reads them.
#pragma once

#include <httpretry/http/body.hpp>

#include <string>

namespace httpretry::cli {

// One value of -F; `literal`: of --form-string, where no character means anything.
struct FormField {
  std::string value;
  bool literal = false;
};

// "name=text", "name=<file", "name=@file,file…", each with ";type=…", ";filename=…" and
// ";headers=…" behind it. Throws UsageError and ReadError; `give_up` as for upload_body.
FormPart form_part(const FormField& field, int give_up);

}  // namespace httpretry::cli
