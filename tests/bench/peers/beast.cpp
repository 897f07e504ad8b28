#include "peer.hpp"

#include <utility>  // Boost 1.74 forgets it

#include <boost/asio.hpp>
#include <boost/beast.hpp>

#include <vector>

namespace bench {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using Request = http::request<http::empty_body>;
using Response = http::response<http::string_body>;

Request request_for(const Target& target) {
  Request request(http::verb::get, target.path, 11);
  request.set(http::field::host, target.host + ":" + std::to_string(target.port));
  return request;
}

asio::ip::tcp::endpoint endpoint_of(const Target& target) {
  return {asio::ip::make_address(target.host), target.port};
}

void check(const Response& response) {
  check_answer(response.result_int(), response.count(http::field::content_type) > 0,
               !response.body().empty());
}

class Blocking final : public Peer {
 public:
  explicit Blocking(const Target& target) : request_(request_for(target)) {
    stream_.connect(endpoint_of(target));
    stream_.socket().set_option(asio::ip::tcp::no_delay(true));
  }
  void run(long count) override {
    for (long i = 0; i < count; ++i) {
      http::write(stream_, request_);
      Response response;
      http::read(stream_, buffer_, response);
      check(response);
    }
  }

 private:
  asio::io_context context_;
  beast::tcp_stream stream_{context_};
  beast::flat_buffer buffer_;
  Request request_;
};

class Callbacks final : public Peer {
 public:
  Callbacks(const Target& target, int width) {
    for (int i = 0; i < width; ++i) lanes_.push_back(std::make_unique<Lane>(*this, target));
  }
  void run(long count) override {
    left_ = count;
    for (auto& lane : lanes_) lane->next();
    context_.restart();
    context_.run();
  }

 private:
  struct Lane {
    Lane(Callbacks& all, const Target& target)
        : all_(all), stream_(all.context_), request_(request_for(target)) {
      stream_.connect(endpoint_of(target));
      stream_.socket().set_option(asio::ip::tcp::no_delay(true));
    }
    void next() {
      if (all_.left_ == 0) return;
      --all_.left_;
      http::async_write(stream_, request_, [this](beast::error_code error, std::size_t) {
        check_answer(error ? 0 : 200, true, true);
        read();
      });
    }
    void read() {
      response_ = {};
      http::async_read(stream_, buffer_, response_, [this](beast::error_code error, std::size_t) {
        check_answer(error ? 0 : 200, true, true);
        check(response_);
        next();
      });
    }
    Callbacks& all_;
    beast::tcp_stream stream_;
    beast::flat_buffer buffer_;
    Request request_;
    Response response_;
  };

  asio::io_context context_;
  std::vector<std::unique_ptr<Lane>> lanes_;
  long left_ = 0;
};

}  // namespace

std::unique_ptr<Peer> make_peer(const Target& target, int width) {
  if (width == 1) return std::make_unique<Blocking>(target);
  return std::make_unique<Callbacks>(target, width);
}

}  // namespace bench
