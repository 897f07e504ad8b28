#include "send/write_out.hpp"

namespace httpretry::cli {
namespace {

// Writer expands a format of -w.
class Writer {
 public:
  Writer(const Transferred& about, std::string& to_stderr) : about_(about), stderr_(to_stderr) {}

  std::string run(std::string_view format) {
    while (!format.empty() && !over_) {
      if (!variable(format) && !escape(format)) {
        *into_ += format.front();
        format.remove_prefix(1);
      }
    }
    return std::move(stdout_);
  }

 private:
  bool variable(std::string_view& format) {
    if (format.starts_with("%%")) {
      *into_ += '%';
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
      *into_ += header(headers_of(about_), name);
    } else {
      expand(name);
    }
    return true;
  }

  void expand(std::string_view name) {
    if (name == "stderr") {
      into_ = &stderr_;
    } else if (name == "stdout") {
      into_ = &stdout_;
    } else if (name == "onerror") {
      over_ = about_.exit_status == 0;
    } else if (const auto* variable = write_out_variable(name); variable != nullptr) {
      *into_ += variable->text(about_);
    } else {
      stderr_ += "httpretry: unknown --write-out variable: '" + std::string(name) + "'\n";
    }
  }

  bool escape(std::string_view& format) {
    if (format.size() < 2 || format.front() != '\\') return false;
    constexpr std::string_view kLetters = "nrt";
    constexpr std::string_view kMeanings = "\n\r\t";
    const auto which = kLetters.find(format[1]);
    if (which == std::string_view::npos) {
      into_->append(format.substr(0, 2));
    } else {
      *into_ += kMeanings[which];
    }
    format.remove_prefix(2);
    return true;
  }

  const Transferred& about_;
  std::string stdout_;
  std::string& stderr_;
  std::string* into_ = &stdout_;
  bool over_ = false;
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

std::string write_out(std::string_view format, const Transferred& about, std::string& to_stderr) {
  return Writer(about, to_stderr).run(format);
}

}  // namespace httpretry::cli
