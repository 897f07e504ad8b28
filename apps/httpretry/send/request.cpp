// Creates the Request for a URL of the command line.
#include "cli/input.hpp"
#include "cli/text.hpp"
#include "send/connection.hpp"
#include "send/data.hpp"
#include "send/form.hpp"
#include "send/options.hpp"

#include <httpretry/http/url.hpp>

#include <openssl/evp.h>

#include <algorithm>
#include <array>
#include <sstream>

namespace httpretry::cli {
namespace {

std::string with_query_text(std::string url, const std::string& items) {
  if (items.empty()) return url;
  const auto fragment = std::min(url.find('#'), url.size());
  const bool has_query = url.find('?') < fragment;
  const bool glue = has_query && fragment > 0 && url[fragment - 1] != '?';
  return url.insert(fragment, (has_query ? (glue ? "&" : "") : "?") + items);
}

// Returns the URL for -T: one that ends in "/" gets the name of the file.
std::string with_file_name(const std::string& url, const std::string& file) {
  const auto path_end = std::min(url.find_first_of("?#"), url.size());
  const auto authority = url.find("://") + 3;
  const bool no_path = url.find('/', authority) >= path_end;
  if (file == "-" || (!no_path && url[path_end - 1] != '/')) return url;
  auto named = url;
  const auto name = percent_encode(file.substr(file.find_last_of('/') + 1));
  return named.insert(path_end, (no_path ? "/" : "") + name);
}

std::string url_of(const SendOptions& options, std::size_t index) {
  auto url = with_scheme(options.urls[index], options.default_scheme);
  if (index < options.uploads.size()) url = with_file_name(url, options.uploads[index]);
  for (const auto& item : options.url_query) url = with_query_text(url, item);
  if (options.data_in_url && options.data) url = with_query_text(url, *options.data);
  return url;
}

std::string method_of(const SendOptions& options, bool upload) {
  const bool posts = options.data.has_value() && !options.data_in_url;
  const bool form = !options.form.empty();
  if (int{options.head} + int{upload} + int{posts} + int{form} > 1) {
    throw UsageError("a request can have only one of -I, -T, -F and -d");
  }
  if (!options.method.empty()) return options.method;
  return options.head ? "HEAD" : upload ? "PUT" : posts || form ? "POST" : "GET";
}

void put_default(Request& request, std::string_view name, std::string_view value) {
  if (!value.empty()) request.set_header(name, value);
}

// Sets the headers that follow from other options than -H, which may replace them.
void set_defaults(const SendOptions& options, Request& request) {
  put_default(request, "User-Agent", options.user_agent.value_or("httpretry/" HTTPRETRY_VERSION));
  request.set_header("Accept", options.json ? "application/json" : "*/*");
  put_default(request, "Referer", options.referer);
  if (!options.range.empty()) request.set_header("Range", "bytes=" + options.range);
  if (options.condition) request.set_header(options.condition->first, options.condition->second);
  if (options.etag) request.set_header("If-None-Match", *options.etag);
  put_default(request, "Cookie", join(options.cookies, "; "));
  if (!options.bearer.empty()) request.set_header("Authorization", "Bearer " + options.bearer);
  if (options.data && !options.data_in_url) {
    request.set_header("Content-Type",
                       options.json ? "application/json" : "application/x-www-form-urlencoded");
  }
}

// Applies one -H of the user to the request: "Name: value" sets a header, "Name;" sets an empty
// one, and "Name:" removes a default one. `names_so_far` has the names of earlier -H, and receives
// this one. `flag` is the name of the option. Throws UsageError. The value may be secret, so the
// message does not contain it.
void apply_header(Request& request, const std::string& flag, const std::string& line,
                  std::vector<std::string>& names_so_far) {
  const auto name_end = line.find_first_of(":;");
  if (name_end == std::string::npos || name_end == 0) {
    // Shows only the first word, which is probably a name without its colon.
    const auto space = line.find(' ');
    const auto shown = space == std::string::npos ? std::string("the text")
                                                  : "\"" + line.substr(0, space) + " …\"";
    throw UsageError("option " + flag + ": " + shown +
                     " is not a header; expected \"Name: value\"");
  }
  const auto name = line.substr(0, name_end);
  const auto value = line.substr(name_end + 1);
  const bool is_blank = value.find_first_not_of(" \t") == std::string::npos;
  // The first header with a name replaces our default; further ones are added.
  const bool is_first = std::ranges::none_of(
      names_so_far, [&](const std::string& earlier) { return equal_ignoring_case(earlier, name); });
  if (is_first) request.remove_header(name);
  names_so_far.push_back(name);
  if (is_blank && line[name_end] == ':') return;  // "Name:"; the default was removed above
  if (!is_blank && line[name_end] == ';') {
    throw UsageError("option " + flag + ": \"" + name +
                     ";\" means an empty header, but text follows the \";\"");
  }
  request.add_header(name, is_blank ? std::string() : value);
}

// Applies all -H of a group, or another `flag` like it: each is a header, or "@FILE" with a header
// on each line.
void apply_headers(const std::string& flag, const std::vector<std::string>& headers, int cancel,
                   Request& request) {
  std::vector<std::string> names_so_far;
  for (const auto& header : headers) {
    if (header.empty()) continue;
    if (!header.starts_with('@')) {
      apply_header(request, flag, header, names_so_far);
      continue;
    }
    auto lines = read_named(header.substr(1), kMaxTextFile, cancel);
    std::erase(lines, '\r');
    std::istringstream stream(lines);
    for (std::string line; std::getline(stream, line);) {
      if (!line.empty()) apply_header(request, flag, line, names_so_far);
    }
  }
}

Form form_of(const SendOptions& options, int cancel) {
  Form form;
  for (const auto& part : options.form) form.add(form_part(part, cancel));
  return form;
}

// Sets the file of a -T as the body of the request. An offset (-C) skips the beginning of the file,
// and the header Content-Range then states which part of the file the body is. Throws ReadError.
// The wait for a pipe ends when the descriptor `cancel` becomes readable.
void set_upload(const SendOptions& options, const std::string& file, int cancel, Request& request) {
  Body body;
  if (options.signer.empty()) {
    body = upload_body(file, cancel, options.offset);
  } else {  // --aws-sigv4: libcurl can sign only a body in memory
    auto bytes = read_named(file, kMaxDataFile, cancel);
    check_offset(options.offset, bytes.size(), "cannot read " + file + ": ");
    bytes.erase(0, options.offset);
    body = std::move(bytes);
  }
  if (options.offset > 0) {
    // The size of the whole file. It is known, because an offset needs a body of known size.
    const auto end = options.offset + size_of(body);
    request.set_header("Content-Range", "bytes " + std::to_string(options.offset) + "-" +
                                            std::to_string(end - 1) + "/" + std::to_string(end));
  }
  request.set_body(std::move(body));
}

// Sets the header with the SHA-256 hash of the body, which some services of AWS require in a signed
// request and which not every libcurl sends. Keeps a header of that name that the user has set, and
// adds none for a body that is not in memory.
void set_body_hash(Request& request) {
  constexpr const char* kName = "x-amz-content-sha256";
  const auto* bytes = request.body().bytes();  // null: there is no body, or it is not in memory
  if (request.headers().contains(kName) || (request.body().present() && bytes == nullptr)) return;
  const std::string_view text = bytes == nullptr ? std::string_view() : *bytes;
  std::array<unsigned char, EVP_MAX_MD_SIZE> hash{};
  unsigned size = 0;
  if (EVP_Digest(text.data(), text.size(), hash.data(), &size, EVP_sha256(), nullptr) != 1) {
    throw std::runtime_error("the hash of the body cannot be computed");
  }
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string hex;
  for (unsigned i = 0; i < size; ++i) {
    hex += kDigits[hash[i] >> 4U];
    hex += kDigits[hash[i] & 0xFU];
  }
  request.set_header(kName, hex);
}

// Returns whether the value of --aws-sigv4 names AWS, "aws:amz:...", and not another provider.
bool signs_for_aws(const SendOptions& options) {
  return equal_ignoring_case((options.signer + ":").substr(0, 8), "aws:amz:");
}

void apply_options(const SendOptions& options, Request& request) {
  auto& own = request.edit_options();
  own.compressed = options.compressed;
  own.compress_with = options.compress_with;
  own.connect_timeout = options.connect_timeout;
  own.max_body = options.max_file_size.value_or(kMostInMemory);
  own.http_version = options.http_version;
  own.upload_rate = options.bytes_per_second;
  own.cost = options.cost;
  if (options.expect_timeout) own.expect_timeout = *options.expect_timeout;
  if (!options.user) return;
  own.credentials = credentials_of(*options.user, options.auth);
  own.credentials->signer = options.signer;
}

}  // namespace

// Returns the request for the URL at `index` of the command line, with the headers, the body and
// the options that the flags request. Throws UsageError and ReadError. The wait for a pipe ends
// when the descriptor `cancel` becomes readable.
Request request_for(const SendOptions& options, std::size_t index, int cancel) {
  const bool has_upload = index < options.uploads.size();  // the n-th -T belongs to the n-th URL
  try {
    Request request(method_of(options, has_upload), url_of(options, index));
    if (options.keep_dot_segments) request.keep_dot_segments();
    if (const auto& url = request.parsed_url(); !url) {
      throw UsageError("\"" + without_secrets(options.urls[index]) + "\" is " +
                       url.error().message);
    } else if (url->has_userinfo() && options.refuse_userinfo) {
      throw UsageError("option --disallow-username-in-url: " +
                       without_secrets(options.urls[index]) + " has a name or password");
    }
    set_defaults(options, request);  // headers such as User-Agent, which -H may replace
    if (!options.form.empty()) request.set_form(form_of(options, cancel));
    apply_headers("-H", options.headers, cancel, request);
    if (has_upload) {
      set_upload(options, options.uploads[index], cancel, request);
    } else if (options.data && !options.data_in_url) {
      request.set_body(*options.data);
    }
    apply_options(options, request);
    if (signs_for_aws(options)) set_body_hash(request);
    return request;
  } catch (const std::invalid_argument& error) {  // for example, an invalid method or header
    throw UsageError(error.what());
  }
}

Headers proxy_headers(const SendOptions& options, int cancel) {
  auto request = Request::get("http://proxy/");  // never sent
  try {
    apply_headers("--proxy-header", options.proxy_headers, cancel, request);
  } catch (const std::invalid_argument& error) {
    throw UsageError(error.what());
  }
  return request.headers();
}

}  // namespace httpretry::cli
