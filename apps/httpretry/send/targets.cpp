#include "send/targets.hpp"

#include "cli/date.hpp"
#include "cli/exit_status.hpp"
#include "cli/output.hpp"
#include "cli/text.hpp"

#include "lib/core/base/descriptor.hpp"
#include "lib/core/base/text.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <system_error>

namespace httpretry::cli {
namespace {

// Returns "FOLDER/FILE", as curl does even for a FILE with a path.
std::string in_folder(const SendOptions& options, const std::string& file) {
  return options.output_folder.empty() ? file : options.output_folder + '/' + file;
}

// Returns the last part of the path, still percent-encoded.
std::string remote_name(const SendOptions& options, std::size_t index, const Request& request) {
  const auto path = request.parsed_url()->path();
  std::string name(path.substr(path.find_last_of('/') + 1));
  if (name == "-") return "./-";  // "-" would be standard output
  if (!name.empty()) return name;
  throw UsageError("option -O: the path of " + without_secrets(options.urls[index]) +
                   " does not end in a file name; use -o FILE");
}

// Returns the n-th -o or -O. The default is -O with --remote-name-all, and "-" otherwise.
std::string output_of(const SendOptions& options, std::size_t index) {
  if (index < options.outputs.size()) return options.outputs[index];
  return options.name_all_files ? kRemoteName : "-";
}

Error cannot_create(const std::string& path, int cause) {
  const bool exists = cause == EEXIST;
  return permanent_error(
      Errc::Internal,
      "cannot create " + printable(path) + ": " + std::generic_category().message(cause) +
          (exists ? "; the server gave this name, and -J does not replace a file" : ""),
      23);  // CURLE_WRITE_ERROR
}

// Returns the position of the first ";" that is not in double quotes, or npos.
std::size_t next_semicolon(std::string_view text) {
  bool in_quotes = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '"') in_quotes = !in_quotes;
    if (text[i] == ';' && !in_quotes) return i;
  }
  return std::string_view::npos;
}

// Returns the value of the parameter `filename` in a Content-Disposition header, such as
// `attachment; filename="a.txt"`, or "" if the header has no such parameter. As in curl, a
// backslash in quotes has no special meaning, and a value without quotes ends at ";".
std::string file_name_parameter(std::string_view text) {
  constexpr std::string_view kName = "filename=";
  constexpr std::string_view kBlanks = " \t";
  for (auto semicolon = next_semicolon(text); semicolon != std::string_view::npos;
       semicolon = next_semicolon(text)) {
    // Removes everything before the next parameter. Nothing is left if only blanks follow.
    text.remove_prefix(std::min(text.find_first_not_of(kBlanks, semicolon + 1), text.size()));
    if (!equal_ignoring_case(text.substr(0, kName.size()), kName)) continue;
    text.remove_prefix(kName.size());
    const bool in_quotes = text.starts_with('"') || text.starts_with('\'');
    // Without a second quote, the value is the rest of the header.
    if (in_quotes) return std::string(text.substr(1, text.find(text.front(), 1) - 1));
    text = text.substr(0, text.find(';'));
    return std::string(text.substr(0, text.find_last_not_of(kBlanks) + 1));
  }
  return {};
}

}  // namespace

std::string target_for(const SendOptions& options, std::size_t index, const Request& request) {
  if (index < options.unused_names.size()) return options.unused_names[index];
  const auto output = output_of(options, index);
  if (output == "-" || output == "/dev/stdout") return "-";
  if (output == "/dev/null") return output;  // whatever --output-dir says
  return in_folder(options, output == kRemoteName ? remote_name(options, index, request) : output);
}

bool file_exists(const std::string& path) {
  struct ::stat about {};
  return ::lstat(path.c_str(), &about) == 0;
}

std::string unused_name(const std::string& target, const std::vector<std::string>& others) {
  if (is_stream(target) || target == "/dev/null") return target;
  for (int number = 0; number <= 100; ++number) {
    auto name = number == 0 ? target : target + '.' + std::to_string(number);
    if (!file_exists(name) && std::ranges::find(others, name) == others.end()) return name;
  }
  throw WriteError("option --no-clobber: " + printable(target) + " and the names up to " +
                   printable(target) + ".100 are taken");
}

void remove_url(SendOptions& options, std::size_t index) {
  for (auto* list : {&options.urls, &options.uploads, &options.outputs}) {
    if (index < list->size()) list->erase(list->begin() + static_cast<std::ptrdiff_t>(index));
  }
}

void set_remote_time(const std::string& file, const Headers& headers) {
  const auto time = date_in(std::string(headers.get("Last-Modified").value_or("")));
  struct ::stat about {};
  if (!time || ::stat(file.c_str(), &about) != 0 || !S_ISREG(about.st_mode)) return;
  const std::array<::timespec, 2> times{{{*time, 0}, {*time, 0}}};
  // A failure is ignored, because the content of the file is complete.
  static_cast<void>(::utimensat(AT_FDCWD, file.c_str(), times.data(), 0));
}

bool names_stdout(const SendOptions& options, std::size_t index) {
  if (index >= options.outputs.size()) return false;
  return options.outputs[index] == "-" || options.outputs[index] == "/dev/stdout";
}

void create_folder_of(const std::string& file) {
  if (file == "-") return;
  const auto folder = std::filesystem::path(file).parent_path();
  std::error_code failed;
  if (!folder.empty()) std::filesystem::create_directories(folder, failed);
  if (!failed) return;
  throw WriteError("cannot create the folder " + folder.string() + ": " + failed.message());
}

bool server_may_name_file(const SendOptions& options, std::size_t index) {
  return options.name_from_header && output_of(options, index) == kRemoteName;
}

std::string name_in(const Headers& headers) {
  auto name = file_name_parameter(headers.get("Content-Disposition").value_or(""));
  name.erase(0, name.find_last_of("/\\") + 1);
  const bool usable = name != "." && name != ".." && std::ranges::none_of(name, is_control);
  return usable ? name : std::string();
}

NamedFile::~NamedFile() {
  if (!path_.empty()) ::unlink(path_.c_str());
}

Result<std::string> NamedFile::choose(const Headers& head) {
  const auto name = name_in(head);
  if (name.empty()) return std::string();
  const auto path = in_folder(options_, name == "-" ? "./-" : name);
  const Descriptor created(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  if (!created.is_open()) return cannot_create(path, errno);
  path_ = path;
  return path;
}

}  // namespace httpretry::cli
