// The values of -F and --form-string, read as curl does.
#pragma once

#include <httpretry/http/body.hpp>

#include <cstdint>
#include <string>

namespace httpretry::cli {

// A field of a form, as it is on the command line.
struct FormField {
  enum class Syntax : std::uint8_t { Curl /* -F */, Literal /* --form-string */ };
  std::string value;
  Syntax syntax = Syntax::Curl;
};

// Parses "name=text", "name=<file" or "name=@file,file…", each optionally followed by ";type=…",
// ";filename=…" and ";headers=…". Throws UsageError and ReadError; `cancel` is that of upload_body.
FormPart form_part(const FormField& field, int cancel);

}  // namespace httpretry::cli
