// CheckedReader: reads a request's body for a transport, and checks its size.
#pragma once

#include "lib/core/base/text.hpp"

#include <httpretry/http/body.hpp>

#include <exception>
#include <new>
#include <string>
#include <utility>

namespace httpretry {

class CheckedReader {
 public:
  // Opens the body from its beginning. An exception of the user's function becomes an error.
  Result<void> open(const Body& body) {
    try {
      auto opened = body.open();
      if (!opened) return std::move(opened).error();
      reader_ = *std::move(opened);
      left_ = reader_->size();
      return {};
    } catch (const std::bad_alloc&) {
      throw;
    } catch (...) {
      Error error(Errc::InvalidRequest,
                  "opening the body threw: " + text_of(std::current_exception()));
      error.permanent = true;
      return error;
    }
  }
  // Returns how much is left of the open body, if its size is known.
  [[nodiscard]] std::optional<std::uint64_t> bytes_left() const { return left_; }

  // Returns the number of bytes, 0 at the end, or BodyReader::kPause. Errors are permanent.
  Result<std::size_t> read(std::span<char> into) {
    const auto count = reader_->read(into);
    if (count && *count == BodyReader::kPause) return count;
    const auto problem = count ? size_problem(*count) : count.error().message;
    if (count && problem.empty()) {
      if (left_) *left_ -= *count;
      return count;
    }
    Error error(Errc::InvalidRequest, problem);
    error.permanent = true;
    return error;
  }
  // Returns the reader that has paused.
  [[nodiscard]] PausingReader* pausing() const { return reader_->pausing(); }

 private:
  // Returns why the size is wrong now that `count` bytes were read, or "" if it is not. If the size
  // is not the announced one, the server takes the next bytes on the connection for a part of the
  // request, or waits for the rest.
  [[nodiscard]] std::string size_problem(std::size_t count) const {
    if (!left_) return {};
    if (count > *left_) return "the body is longer than its announced size";
    if (count > 0 || *left_ == 0) return {};
    return "the body ended " + std::to_string(*left_) + " bytes before its announced size";
  }

  std::unique_ptr<BodyReader> reader_;
  std::optional<std::uint64_t> left_;
};

}  // namespace httpretry
