// Converts the values of connection flags to TransportOptions.
#pragma once

#include <httpretry/chain/transport.hpp>
#include <httpretry/curl/transport_options.hpp>

#include <string>

namespace httpretry::cli {

// Parses "name:password".
Credentials credentials_of(const std::string& text, Credentials::Scheme scheme);

// Prompts on the terminal for the password of a "name" without one, and adds it. `flag` is "-u" or
// "-U". Throws UsageError if there is no terminal; `cancel` is that of read_whole.
void complete_credentials(std::string& text, const std::string& flag, int cancel);

// Sets a certificate from curl's FILE[:PASSWORD], in which "\:" is a colon in the file name. `flag`
// is the name of the option in messages.
void set_certificate(ClientCertificate& certificate, const std::string& flag,
                     const std::string& text);

// Replaces the option at the start of an error message by its flag: "TransportOptions::ca_file …"
// becomes "option --cacert …".
std::string with_flag_name(std::string message);

// If no flag sets the certificates to trust, sets those of the environment, as curl does.
void add_environment_certificates(TransportOptions& connection);

}  // namespace httpretry::cli
