#include "peer.hpp"

#include <cpprest/http_client.h>

#include <atomic>
#include <latch>

namespace bench {
namespace {

using web::http::client::http_client;

class CppRest final : public Peer {
 public:
  CppRest(const Target& target, int width)
      : client_(target.origin()), path_(target.path), width_(width) {}
  void run(long count) override {
    left_ = count;
    std::latch done(count);
    for (int i = 0; i < width_; ++i) next(done);
    done.wait();
  }

 private:
  void next(std::latch& done) {
    if (left_.fetch_sub(1) <= 0) return;
    client_.request(web::http::methods::GET, path_)
        .then([this, &done](const web::http::http_response& response) {
          return response.extract_utf8string(true).then(
              [this, &done, response](const std::string& body) {
                check_answer(response.status_code(), response.headers().has("Content-Type"),
                             !body.empty());
                next(done);
                done.count_down();
              });
        });
  }
  http_client client_;
  std::string path_;
  int width_;
  std::atomic<long> left_ = 0;
};

}  // namespace

std::unique_ptr<Peer> make_peer(const Target& target, int width) {
  return std::make_unique<CppRest>(target, width);
}

}  // namespace bench
