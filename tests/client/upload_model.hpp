// A strict server of resumable uploads, without its network.
#pragma once

#include <httpretry/http/response.hpp>

#include <charconv>
#include <string>
#include <string_view>

namespace httpretry {

class UploadModel {
 public:
  // A PUT to the session, of whose body these bytes came.
  Response put(std::string_view content_range, std::string_view bytes) {
    const auto total = number_after(content_range, "/");
    if (!content_range.starts_with("bytes */")) {
      const auto first = number_after(content_range, "bytes ");
      const auto last = number_after(content_range, "-");
      const bool fits = first == content.size() && last < total && first + bytes.size() <= last + 1;
      if (!fits || complete) return mistake();
      content += bytes;
    } else if (!bytes.empty()) {
      return mistake();
    }
    complete = content.size() == total;
    if (complete) return Response(201, "stored");
    Response more(308);
    if (!content.empty()) {
      more.headers.add("Range", "bytes=0-" + std::to_string(content.size() - 1));
    }
    return more;
  }

  std::string content;
  bool complete = false;
  int mistakes = 0;  // of the client

 private:
  Response mistake() {
    ++mistakes;
    return Response(400, "not the next bytes");
  }
  static std::uint64_t number_after(std::string_view text, std::string_view what) {
    std::uint64_t number = 0;
    const auto at = text.find(what) + what.size();
    std::from_chars(text.data() + at, text.data() + text.size(), number);
    return number;
  }
};

}  // namespace httpretry
