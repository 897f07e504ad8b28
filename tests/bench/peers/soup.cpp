#include "peer.hpp"

#include <libsoup/soup.h>

namespace bench {
namespace {

class Soup final : public Peer {
 public:
  Soup(const Target& target, int width)
      : session_(soup_session_new_with_options("max-conns", width, "max-conns-per-host", width,
                                               nullptr)),
        loop_(g_main_loop_new(nullptr, FALSE)),
        url_(target.origin() + target.path),
        width_(width) {}
  ~Soup() override {
    g_main_loop_unref(loop_);
    g_object_unref(session_);
  }
  void run(long count) override {
    if (width_ == 1) {
      for (long i = 0; i < count; ++i) {
        SoupMessage* message = soup_message_new("GET", url_.c_str());
        check(message, soup_session_send_and_read(session_, message, nullptr, nullptr));
        g_object_unref(message);
      }
      return;
    }
    to_start_ = to_end_ = count;
    for (int i = 0; i < width_; ++i) next();
    g_main_loop_run(loop_);
  }

 private:
  static void check(SoupMessage* message, GBytes* body) {
    auto* headers = soup_message_get_response_headers(message);
    check_answer(static_cast<int>(soup_message_get_status(message)),
                 soup_message_headers_get_one(headers, "Content-Type") != nullptr,
                 body != nullptr && g_bytes_get_size(body) > 0);
    g_bytes_unref(body);
  }
  void next() {
    if (to_start_ == 0) return;
    --to_start_;
    SoupMessage* message = soup_message_new("GET", url_.c_str());
    soup_session_send_and_read_async(session_, message, G_PRIORITY_DEFAULT, nullptr, &ended, this);
    g_object_unref(message);
  }
  static void ended(GObject* session, GAsyncResult* result, gpointer self) {
    auto& soup = *static_cast<Soup*>(self);
    SoupMessage* message = soup_session_get_async_result_message(SOUP_SESSION(session), result);
    check(message, soup_session_send_and_read_finish(SOUP_SESSION(session), result, nullptr));
    soup.next();
    if (--soup.to_end_ == 0) g_main_loop_quit(soup.loop_);
  }

  SoupSession* session_;
  GMainLoop* loop_;
  std::string url_;
  int width_;
  long to_start_ = 0;
  long to_end_ = 0;
};

}  // namespace

std::unique_ptr<Peer> make_peer(const Target& target, int width) {
  return std::make_unique<Soup>(target, width);
}

}  // namespace bench
