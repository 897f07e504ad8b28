// Problems: collects what is wrong with one file.
#pragma once

#include "lib/json/node.hpp"

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
  void error(const JsonNode& at, std::string message);
  void error_at_key(const JsonNode& at, std::string message);
  void warn(const JsonNode& at, std::string message);
  // At a position within an object or array; `inside` may be nullptr.
  void error(Position position, const JsonNode* inside, std::string message);
  // In a file that is not JSON.
  void error(Position position, std::string pointer, std::string message);
  void warn(Position position, std::string pointer, std::string message);

  // did_you_mean, where the message will be kept: the search takes time.
  [[nodiscard]] std::string suggestion(std::string_view word,
                                       std::span<const std::string_view> names) const;

  [[nodiscard]] const std::string& file() const { return file_; }
  [[nodiscard]] bool failed() const { return failed_; }
  [[nodiscard]] bool full() const { return problems_.size() >= kMaxProblems; }
  // In the order of the file, each once.
  [[nodiscard]] std::vector<Problem> take();

 private:
  void add(Position position, const JsonNode* at, std::string message, bool warning);
  void add(Position position, std::string pointer, std::string message, bool warning);

  std::string file_;
  std::vector<Problem> problems_;
  bool failed_ = false;
  bool more_ = false;
};

// One line for each error among the problems.
HTTPRETRY_API std::string error_lines(const std::vector<Problem>& problems);

}  // namespace httpretry
