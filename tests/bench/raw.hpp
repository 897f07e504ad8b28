// The yardstick: libcurl used by hand, as well as it can be, delivering what a client would: the
// status, the headers in one block, the body in a string that was made large enough.
#pragma once

#include <curl/curl.h>

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace bench {

struct Answer {
  long status = 0;
  std::string headers;
  std::string body;
};

// Plain: as one first writes it, with no option that can be left out.
enum class Options { Tuned, Plain };

// One easy handle with its request, set up once and sent again and again. Tuned, the bytes it sends
// are those that httpretry sends, but for the User-Agent.
class RawRequest {
 public:
  RawRequest(const std::string& url, const std::vector<std::string>& headers,
             Options options = Options::Tuned);
  ~RawRequest();
  // The certificates of a TLS server are in this file.
  void trust(const std::string& ca_file);
  RawRequest(const RawRequest&) = delete;
  RawRequest& operator=(const RawRequest&) = delete;

  [[nodiscard]] CURL* handle() const { return easy_; }
  void begin() { answer_ = Answer(); }
  Answer take();

 private:
  static std::size_t on_header(char* data, std::size_t size, std::size_t count, void* self);
  static std::size_t on_body(char* data, std::size_t size, std::size_t count, void* self);

  CURL* easy_;
  CURLU* url_;
  std::vector<std::string> text_;
  std::vector<curl_slist> lines_;
  Answer answer_;
};

// One after the other, by curl_easy_perform.
void perform(RawRequest& request, long count);

// Keeps `width` requests in flight until `count` have been answered.
class Drive {
 public:
  Drive() = default;
  virtual ~Drive() = default;
  Drive(const Drive&) = delete;
  Drive& operator=(const Drive&) = delete;
  void run(const std::vector<std::unique_ptr<RawRequest>>& requests, long count);

 protected:
  virtual void start(RawRequest& request) = 0;
  virtual void turn() = 0;  // waits, and lets libcurl work
  void reap(CURLM* multi);
  static CURLM* make_multi(long connections);

 private:
  long left_to_start_ = 0;
  long left_to_end_ = 0;
};

// curl_multi_poll and curl_multi_perform, one multi.
std::unique_ptr<Drive> drive_by_poll(std::size_t width);
// curl_multi_socket_action and epoll: descriptors stay registered, libcurl's deadline is the
// timeout of epoll_wait. With at most `per_multi` transfers on each multi.
std::unique_ptr<Drive> drive_by_epoll(std::size_t width, std::size_t per_multi);

}  // namespace bench
