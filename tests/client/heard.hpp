// What is logged while it lives, with the level of each line.
#pragma once

#include <httpretry/log/log.hpp>

#include <memory>
#include <mutex>
#include <string>

namespace httpretry {

class Heard {
 public:
  Heard() { log_to(to()); }
  ~Heard() { log_to(nullptr); }
  Heard(const Heard&) = delete;
  Heard& operator=(const Heard&) = delete;

  [[nodiscard]] LogFunction to() const {
    return [text = text_](LogLevel level, std::string_view line) {
      const std::lock_guard lock(text->mutex);
      text->lines.append(to_string(level)).append(": ").append(line).append("\n");
    };
  }
  [[nodiscard]] std::string text() const {
    const std::lock_guard lock(text_->mutex);
    return text_->lines;
  }
  [[nodiscard]] bool has(std::string_view what) const {
    return text().find(what) != std::string::npos;
  }

 private:
  struct Text {
    std::mutex mutex;
    std::string lines;
  };
  std::shared_ptr<Text> text_ = std::make_shared<Text>();
};

}  // namespace httpretry
