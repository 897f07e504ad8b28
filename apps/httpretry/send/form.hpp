// The values of -F and --form-string, read as curl does.
#pragma once

#include <httpretry/http/body.hpp>

#include <string>

namespace httpretry::cli {

// A value of -F or, if `literal` is set, of --form-string.
struct FormField {
  std::string value;
  bool literal = false;
};

// Parses "name=text", "name=<file" or "name=@file,file…", each optionally followed by ";type=…",
// ";filename=…" and ";headers=…". Throws UsageError and ReadError; `cancel` is that of upload_body.
FormPart form_part(const FormField& field, int cancel);

}  // namespace httpretry::cli
