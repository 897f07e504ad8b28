#include "send/write_out.hpp"

#include "cli/exit_status.hpp"

namespace httpretry::cli {
namespace {

// Writer expands a format of -w.
class Writer {
 public:
  Writer(const Transferred& about, std::string& to_stderr) : about_(about), stderr_(to_stderr) {}

  std::string run(std::string_view format) {
    while (!format.empty() && !has_ended_) {
      if (!take_variable(format) && !take_escape(format)) {
        *output_ += format.front();
        format.remove_prefix(1);
      }
    }
    return std::move(stdout_);
  }

 private:
  // Expands "%%", "%{name}" or "%header{name}" at the start of `format`, the rest of a -w: appends
  // the value to the output, and removes the variable from `format`. Returns false, and changes
  // nothing, if `format` starts with none of these.
  bool take_variable(std::string_view& format) {
    if (format.starts_with("%%")) {
      *output_ += '%';
      format.remove_prefix(2);
      return true;
    }
    const bool of_header = format.starts_with("%header{");
    if (!of_header && !format.starts_with("%{")) return false;
    const auto open = format.find('{');
    const auto close = format.find('}');
    if (close == std::string_view::npos) return false;
    const auto name = format.substr(open + 1, close - open - 1);
    format.remove_prefix(close + 1);
    if (of_header) {
      *output_ += header(headers_of(about_), name);
    } else {
      expand(name);
    }
    return true;
  }

  // Appends the value of a variable. Three names are commands instead: "stderr" and "stdout" switch
  // the output, and "onerror" ends it unless the transfer failed.
  void expand(std::string_view name) {
    if (name == "stderr") {
      output_ = &stderr_;
    } else if (name == "stdout") {
      output_ = &stdout_;
    } else if (name == "onerror") {
      has_ended_ = about_.exit_status == kOk;
    } else if (const auto* variable = write_out_variable(name); variable != nullptr) {
      *output_ += variable->text(about_);
    } else {
      stderr_ += "httpretry: unknown --write-out variable: '" + std::string(name) + "'\n";
    }
  }

  // Expands a backslash and the letter after it, and removes both from `format`. Unknown escapes
  // stay as they are. Returns false if `format` does not start with a backslash.
  bool take_escape(std::string_view& format) {
    if (format.size() < 2 || format.front() != '\\') return false;
    constexpr std::string_view kLetters = "nrt";
    constexpr std::string_view kMeanings = "\n\r\t";
    const auto letter = kLetters.find(format[1]);
    if (letter == std::string_view::npos) {
      output_->append(format.substr(0, 2));
    } else {
      *output_ += kMeanings[letter];
    }
    format.remove_prefix(2);
    return true;
  }

  const Transferred& about_;
  std::string stdout_;
  std::string& stderr_;
  std::string* output_ = &stdout_;
  bool has_ended_ = false;
};

}  // namespace

std::string head_of(const Response& response) {
  std::string text = "HTTP/" + response.http_version + " " + std::to_string(response.status) + " " +
                     response.reason + "\r\n";
  for (const auto field : response.headers) {
    text.append(field.name).append(": ").append(field.value).append("\r\n");
  }
  return text + "\r\n";
}

std::string head_of(const Outcome& outcome) {
  if (outcome) return head_of(*outcome);
  const auto& error = outcome.error();
  if (error.status == 0) return {};
  Response begun(error.status);
  begun.headers = error.headers;
  return head_of(begun);
}

std::string write_out(std::string_view format, const Transferred& about, std::string& to_stderr) {
  return Writer(about, to_stderr).run(format);
}

}  // namespace httpretry::cli
