// Problems: collects what is wrong with one file.
#pragma once

#include "lib/json/json.hpp"

#include <httpretry/json/problem.hpp>

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace httpretry {

// More than anybody reads at once; a file of megabytes may have a problem in each line.
inline constexpr std::size_t kMaxProblems = 1000;

class HTTPRETRY_API Problems {
 public:
  explicit Problems(std::string file) : file_(std::move(file)) {}

  // At a value, or at the name of a member.
  void error(const JsonNode& at, std::string message) { add(at, at.position, std::move(message)); }
  void error_at_key(const JsonNode& at, std::string message) {
    add(at, at.key_position, std::move(message));
  }
  void warn(const JsonNode& at, std::string message) {
    warn(at.position, pointer(at), std::move(message));
  }
  // Where there is no value.
  void error(Position position, std::string pointer, std::string message) {
    add(position, std::move(pointer), std::move(message), false);
  }
  void warn(Position position, std::string pointer, std::string message) {
    add(position, std::move(pointer), std::move(message), true);
  }

  // did_you_mean, where the message will be kept: the search takes time.
  [[nodiscard]] std::string suggestion(std::string_view word,
                                       std::span<const std::string_view> names) const;

  [[nodiscard]] const std::string& file() const { return file_; }
  [[nodiscard]] bool failed() const { return failed_; }
  [[nodiscard]] bool full() const { return problems_.size() >= kMaxProblems; }
  // In the order of the file, each once.
  [[nodiscard]] std::vector<Problem> take();

 private:
  // It is worked out only for what is kept: very many may be asked for.
  [[nodiscard]] std::string pointer(const JsonNode& at) const {
    return full() ? std::string() : pointer_to(at);
  }
  void add(const JsonNode& at, Position position, std::string message) {
    at.bad = true;
    error(position, pointer(at), std::move(message));
  }
  void add(Position position, std::string pointer, std::string message, bool warning);

  std::string file_;
  std::vector<Problem> problems_;
  bool failed_ = false;
  bool more_ = false;
};

// One line for each error among the problems.
HTTPRETRY_API std::string error_lines(const std::vector<Problem>& problems);

}  // namespace httpretry
